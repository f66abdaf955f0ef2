package scenes

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/internal/stock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// buildStatusd makes the program that the scenes are about.
func buildStatusd(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "statusd")
	if output, err := exec.Command("go", "build", "-o", program, "../../cmd/statusd").CombinedOutput(); err != nil {
		t.Fatalf("build statusd: %v\n%s", err, output)
	}
	return program
}

// Every scene, on one node, as short as it can be: what is expected is seen, and nothing else.
func TestScenes(t *testing.T) {
	stock.Need(t)
	stage, err := NewStage(stock.Context(t), StageOptions{Program: buildStatusd(t), Log: os.Stderr, Settings: Paces})
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
