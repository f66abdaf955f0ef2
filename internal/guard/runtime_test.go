package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

func TestTheRuntimeIsRestartedIfAllowed(t *testing.T) {
	runtime := newKubelet()
	run(t, func(k *kubelet, o *guard.Options) {
		k.runtime = silent("connection refused")
		o.Runtime, o.Policy.RestartRuntime = runtime, true
	}, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
		time.Sleep(20 * time.Second)
		if r := g.Report().Restarts; runtime.count() != 1 || k.count() != 0 || r[0].What != guard.TargetRuntime {
			t.Errorf("%d restarts of the runtime, %d of the kubelet: %+v", runtime.count(), k.count(), r)
		}
	})
}

// slowRuntime answers again some seconds after it was restarted.
type slowRuntime struct {
	*kubelet
	of *kubelet // that has its answers
}

// Restart is that of a service.
func (s slowRuntime) Restart(ctx context.Context) error {
	time.AfterFunc(5*time.Second, func() {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		s.of.runtime = guard.Answer{Answered: true, OK: true}
	})
	return s.kubelet.Restart(ctx)
}

// A runtime that was restarted gets the time to start and to be seen answering, even if the policy has no pause. Until then the
// kubelet is not healthy.
func TestARuntimeThatStartsIsNotRestartedAgain(t *testing.T) {
	runtime := newKubelet()
	run(t, func(k *kubelet, o *guard.Options) {
		k.runtime = silent("connection refused")
		o.Runtime, o.Policy.RestartRuntime = slowRuntime{runtime, k}, true
		o.Policy.FirstPause, o.Policy.LastPause, o.Policy.CoolDown = time.Millisecond, time.Millisecond, 0
	}, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
		for runtime.count() == 0 {
			time.Sleep(time.Second)
		}
		time.Sleep(4 * time.Second)
		if r := g.Report(); r.Health != guard.Degraded {
			t.Errorf("%s before the runtime answers", r.Health)
		}
		time.Sleep(time.Minute)
		if r := g.Report(); runtime.count() != 1 || r.Health != guard.Healthy {
			t.Errorf("%d restarts of the runtime, %s", runtime.count(), r.Health)
		}
	})
}
