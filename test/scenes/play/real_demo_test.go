//go:build real

package main

import (
	"os"
	"testing"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/scenes"
	"github.com/statusd/statusd/test/stock"
)

// make observe-demo, without its stay at the end.
func TestDemo(t *testing.T) {
	stock.Need(t)
	program := binaries.Path(t, binaries.Statusd)
	ctx := stock.Context(t)
	stage, err := scenes.NewStage(ctx, scenes.StageOptions{Program: program, Log: os.Stderr})
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
