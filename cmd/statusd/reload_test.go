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
		if next := d.awaitReload(ctx, 0, slog.New(slog.DiscardHandler), hangups, wanted, nil); next != nil {
			t.Fatal("a daemon that was stopped is reloaded")
		}
	}
}

// A hangup without a change of the config ends no stream, watch or back-off: nothing is started again. The wish of the daemon
// itself, and another config, are.
func TestAHangupWithoutAChange_StartsNothingAgain(t *testing.T) {
	config := 1
	d := daemonOf[int]{load: func() (int, error) { return config, nil }, check: func(int) error { return nil }, follows: true}
	hangups, wanted := make(chan os.Signal), make(chan struct{}, 1)
	answered := make(chan struct{})
	next := make(chan *int)
	await := func() {
		next <- d.awaitReload(t.Context(), 1, slog.New(slog.DiscardHandler), hangups, wanted, func() error { answered <- struct{}{}; return nil })
	}
	go await()
	for range 100 {
		hangups <- syscall.SIGHUP
		select {
		case <-answered:
		case <-next:
			t.Fatal("a daemon whose config has not changed is started again")
		}
	}
	config = 2
	hangups <- syscall.SIGHUP
	if got := <-next; got == nil || *got != 2 {
		t.Errorf("got %v, want the changed config", got)
	}
	config = 1
	go await()
	wanted <- struct{}{}
	if got := <-next; got == nil || *got != 1 {
		t.Errorf("got %v, want a reload that the daemon asked for", got)
	}
}
