package status

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"
)

// An embedder who sets no logger sees what goes wrong, and not each step.
func TestDefaultLogger_WritesWarningsToTheDefaultOfSlog(t *testing.T) {
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(output)
		log.SetFlags(flags)
	})
	var written bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelDebug})))
	manager, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	logger := manager.opts.Logger.With("node", "n").WithGroup("g")
	logger.Info("a step")
	logger.Warn("a problem")
	if got := written.String(); strings.Contains(got, "a step") || !strings.Contains(got, "a problem") {
		t.Errorf("got %q, want the warning alone", got)
	}
}
