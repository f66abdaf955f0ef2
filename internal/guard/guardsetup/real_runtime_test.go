//go:build real

package guardsetup

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/test/stock"
)

// stockRuntime is the containerd of a stock node as a service. The guard is the only one that uses it.
type stockRuntime struct{ containerd *stock.Containerd }

// Name is that of a service.
func (s *stockRuntime) Name() string { return "containerd" }

// State is that of a service, of which no operator wants anything.
func (s *stockRuntime) State(context.Context) (guard.Process, error) {
	return guard.Process{Exists: !s.containerd.Process().Over()}, nil
}

// Start is that of a service.
func (s *stockRuntime) Start(ctx context.Context) error { return s.containerd.Start(ctx) }

// Stop is that of a service.
func (s *stockRuntime) Stop(context.Context) error {
	s.containerd.Process().Kill()
	return nil
}

// Restart is that of a service.
func (s *stockRuntime) Restart(ctx context.Context) error {
	return errors.Join(s.Stop(ctx), s.Start(ctx))
}

// A containerd that is killed, and one that is frozen, are restarted. Neither the kubelet nor a container is.
func TestRealRuntime(t *testing.T) {
	t.Parallel()
	node := stock.Start(t, stock.Options{Name: "runtime"})
	s := newScene(t, node, &stockRuntime{node.Containerd})
	pod, err := node.Create(s.ctx, node.Pod("lasting", "while :; do sleep 1; done"))
	if err != nil {
		t.Fatal(err)
	}
	before := s.awaitReady(pod).Status.ContainerStatuses[0]
	for _, hurt := range []struct {
		name string
		how  func(*stock.Process) error
	}{
		{"killed", func(p *stock.Process) error { p.Kill(); return nil }},
		{"frozen", func(p *stock.Process) error { return p.Pause(s.ctx) }},
	} {
		restarts, begin := s.count(), time.Now()
		if err := hurt.how(node.Containerd.Process()); err != nil {
			t.Fatal(err)
		}
		r := s.await("a restart of the runtime, and a healthy kubelet", func(r guard.Report) bool {
			return len(r.Restarts) > restarts && r.Under == "" && healthy(r)
		})
		t.Logf("%s: restarted after %.1f s, healthy after %.1f s", hurt.name, r.Restarts[restarts].At.Sub(begin).Seconds(), time.Since(begin).Seconds())
		if got := r.Restarts[restarts]; len(r.Restarts) != restarts+1 || got.What != guard.TargetRuntime || got.Reason != guard.RuntimeDown || got.Err != "" {
			t.Errorf("%s: restarted %+v, want the runtime once for %s", hurt.name, r.Restarts[restarts:], guard.RuntimeDown)
		}
	}
	if after := s.awaitReady(pod).Status.ContainerStatuses[0]; after.ContainerID != before.ContainerID || after.RestartCount != 0 {
		t.Errorf("the container was %s and is %s, restarted %d times", before.ContainerID, after.ContainerID, after.RestartCount)
	}
}

// awaitReady waits until a pod is ready.
func (s *scene) awaitReady(pod *v1.Pod) *v1.Pod {
	s.t.Helper()
	ready, err := s.node.AwaitPod(s.ctx, pod.Namespace, pod.Name, "ready", stock.Ready)
	if err != nil {
		s.t.Fatal(err)
	}
	return ready
}
