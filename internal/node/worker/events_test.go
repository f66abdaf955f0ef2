package worker_test

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

// The events of a life are those of the kubelet, in its order, apart from those of images.
func TestEventsOfALife(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.delete(pod, 5)
		n.wantEvents("main Created: Container created", "main Started: Container started", "main Killing: Stopping container main")
	})
	broken := &runtime.StartError{Reason: runtime.WaitingRunError, Err: errors.New("no such file")}
	for listed, want := range map[bool][]string{
		true:  {"main Created: Container created", "main Failed: Error: no such file"},
		false: {"main Failed: Error: no such file"}, // nothing was created
	} {
		story(t, func(n *node) {
			n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StartError: broken, Listed: listed}}))
			n.update(withPolicy(newPod("job"), v1.RestartPolicyNever))
			n.wantEvents(want...)
		})
	}
}

func (n *node) wantEvents(want ...string) {
	n.t.Helper()
	n.events.mu.Lock()
	defer n.events.mu.Unlock()
	if !slices.Equal(n.events.all, want) {
		n.t.Errorf("got events %q, want %q", n.events.all, want)
	}
}
