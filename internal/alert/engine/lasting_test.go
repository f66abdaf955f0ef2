package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert"
)

// What was answered is in the file: a crash right after the answer loses no silence, and brings none back.
func TestASilenceIsWrittenBeforeItIsAnswered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alerts")
	ready := make(chan struct{})
	e, err := New(Options{Source: newLive(), Set: parsed(t, rulesForTests), Node: "n", StateFile: file, Ready: ready})
	if err != nil {
		t.Fatal(err)
	}
	all := alert.Silence{Matchers: []alert.Matcher{{Name: "pod", Value: "web", IsEqual: true}}, Until: time.Now().Add(time.Hour)}
	if _, err := e.Silence(all); err != nil { // nothing writes yet, and nobody waits
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	close(ready)
	for !e.isRunning() {
		time.Sleep(time.Millisecond)
	}
	lines := func(id string) int {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), id)
	}
	for range 50 {
		s, err := e.Silence(all)
		if err != nil || lines(s.ID) != 1 {
			t.Fatalf("silence %s is in %d lines of the file (%v)", s.ID, lines(s.ID), err)
		}
		if err := e.Expire(s.ID); err != nil || lines(s.ID) == 1 {
			t.Fatalf("the end of silence %s is not in the file (%v)", s.ID, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := e.Silence(all); err != nil { // nothing writes any more
		t.Fatal(err)
	}
}

func (e *Engine) isRunning() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs
}
