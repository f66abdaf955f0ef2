package main

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
)

// A daemon that is asked to stop and to reload at once stops: it is not started again to be stopped.
func TestAStopWinsOverAReload(t *testing.T) {
	d := daemonOf[int]{load: func() (int, error) { return 1, nil }, check: func(int) error { return nil }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // each time a select has the choice
		hangups, wanted := make(chan os.Signal, 1), make(chan struct{}, 1)
		hangups <- syscall.SIGHUP
		wanted <- struct{}{}
		if next := d.awaitReload(ctx, slog.New(slog.DiscardHandler), hangups, wanted); next != nil {
			t.Fatal("a daemon that was stopped is reloaded")
		}
	}
}
