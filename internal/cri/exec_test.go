package cri

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A command that takes too long has failed; a container runtime that says nothing has not run it. A liveness probe that took one for the other would
// have all containers restarted after each pause of the container runtime.
func TestExec_TooLong(t *testing.T) {
	for name, frozen := range map[string]bool{"the command": false, "the container runtime": true} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			id := n.start(testPod("uid-1"))
			if frozen {
				thaw := make(chan struct{})
				defer close(thaw)
				n.fake.change(func() { n.fake.frozen = thaw })
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := n.Exec(ctx, id, []string{"sleep", "1000"})
			if got := errors.Is(err, context.DeadlineExceeded); err == nil || got == frozen {
				t.Errorf("got %v, which says of the command that it takes too long: %v", err, got)
			}
			if got := errors.Is(err, errSilent); got != frozen {
				t.Errorf("got %v, which says of the container runtime that it is silent: %v", err, got)
			}
		})
	}
}

// A probe that ends with its container does not wait for the container runtime.
func TestExec_Canceled_EndsAtOnce(t *testing.T) {
	n := newNode(t)
	id := n.start(testPod("uid-1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Exec(ctx, id, []string{"sleep", "1000"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the command was canceled", err)
	}
}
