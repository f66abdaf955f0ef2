// Package sidetest runs a side of an observer for a test and waits for its facts.
package sidetest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
)

// Side is a side whose facts are of type F.
type Side[F any] interface {
	Run(ctx context.Context) error
	Facts() F
}

// Watched is a side that runs.
type Watched[S Side[F], F any] struct {
	Side    S
	t       *testing.T
	changed chan struct{} // of capacity 1
}

// Watch runs a side until the test ends. Open makes it, with a function to call when its facts change.
func Watch[S Side[F], F any](t *testing.T, open func(changed func(types.UID)) (S, error)) *Watched[S, F] {
	t.Helper()
	w := &Watched[S, F]{t: t, changed: make(chan struct{}, 1)}
	var err error
	if w.Side, err = open(func(types.UID) { wake.Up(w.changed) }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Side.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	return w
}

// Await waits until the facts are as wanted. The test's own timeout is the only bound.
func (w *Watched[S, F]) Await(what string, wanted func(F) bool) F {
	w.t.Helper()
	for {
		facts := w.Side.Facts()
		if wanted(facts) {
			return facts
		}
		select {
		case <-w.changed:
		case <-w.t.Context().Done():
			w.t.Fatalf("%s: not seen, last %+v", what, facts)
		}
	}
}
