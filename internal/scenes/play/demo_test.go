package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/statusd/statusd/internal/scenes"
	"github.com/statusd/statusd/internal/stock"
)

// make observe-demo, without its stay at the end.
func TestDemo(t *testing.T) {
	stock.Need(t)
	program := filepath.Join(t.TempDir(), "statusd")
	if output, err := exec.Command("go", "build", "-o", program, "../../../cmd/statusd").CombinedOutput(); err != nil {
		t.Fatalf("build statusd: %v\n%s", err, output)
	}
	ctx := stock.Context(t)
	stage, err := scenes.NewStage(ctx, scenes.StageOptions{Program: program, Log: os.Stderr, Settings: scenes.Paces})
	if err != nil {
		t.Fatal(err)
	}
	err = demo(ctx, options{program: program}, stage)
	if err != nil {
		t.Error(err, "\n", stage.Node.Tail(20))
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
}
