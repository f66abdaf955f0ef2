//go:build real

package scenes

import (
	"os"
	"testing"
	"time"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/stock"
)

// Every scene, on one node, as short as it can be: what is expected is seen, and nothing else.
func TestScenes(t *testing.T) {
	stock.Need(t)
	stage, err := NewStage(stock.Context(t), StageOptions{Program: binaries.Path(t, binaries.Statusd), Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Log(stage.Node.Tail(60))
		}
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}()
	var results []Result
	for _, scene := range All(Times{APIDown: 5 * time.Second, Churn: time.Minute, Pods: 30}) {
		t.Run(scene.Name, func(t *testing.T) {
			result, err := stage.Play(stock.Context(t), scene)
			results = append(results, result)
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range result.Wrong {
				t.Error(wrong)
			}
		})
	}
	t.Log("\n" + Table(results))
}
