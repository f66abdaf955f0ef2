package guard_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// A runtime that an operator has stopped, as for a migration, stays stopped, and the reason is announced once.
func TestRuntimeStoppedByRequest_IsLeftAlone(t *testing.T) {
	for want, process := range map[string]guard.Process{
		"containerd.service: its unit was stopped by request at ": {Sure: true, Asked: time.Now()},
		"containerd.service: its unit is masked":                  {Sure: true, Masked: true},
		"containerd.service: its supervisor is about to start it": {Sure: true, Restarting: true},
	} {
		runtime := newKubelet()
		runtime.name, runtime.process = "containerd.service", process
		kept := 0
		run(t, func(k *kubelet, o *guard.Options) {
			k.runtime = silent("connection refused")
			o.Runtime, o.Policy.RestartRuntime = runtime, true
			o.Keep = func(context.Context, guard.Case) (string, error) { kept++; return "", nil }
		}, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
			time.Sleep(5*time.Minute - 100*time.Millisecond)
			if r := g.Report(); runtime.count()+k.count() != 0 || len(r.Restarts) != 0 || !strings.HasPrefix(r.Withheld, want) {
				t.Errorf("%d restarts of the runtime, %d of the kubelet, withheld %q, want %q", runtime.count(), k.count(), r.Withheld, want)
			}
			if n := strings.Count(told.String(), "KubeletRestartSuppressed"); n != 1 || kept != 0 {
				t.Errorf("announced %d times that a restart is withheld, want once; evidence stored %d times, want none", n, kept)
			}
			runtime.end(guard.Process{Sure: true})
			time.Sleep(time.Minute)
			if runtime.count() == 0 {
				t.Error("a runtime that has ended by itself since is not restarted")
			}
		})
	}
}

// What an operator does while the evidence of a restart is collected counts.
func TestOperatorActsDuringARestart_IsLeftAlone(t *testing.T) {
	all := &slots{holders: map[string]time.Time{}, max: 1}
	for want, act := range map[string]func(*kubelet, *guard.Guard) error{
		"its unit was stopped by request": func(k *kubelet, _ *guard.Guard) error {
			k.end(guard.Process{Sure: true, Asked: time.Now()})
			return nil
		},
		"its unit is being stopped": func(k *kubelet, _ *guard.Guard) error {
			k.end(guard.Process{Sure: true, Stopping: true})
			return nil
		},
		"maintenance until": func(_ *kubelet, g *guard.Guard) error { return g.Maintenance(time.Now().Add(time.Hour)) },
	} {
		var acting *guard.Guard
		run(t, func(k *kubelet, o *guard.Options) {
			o.Fleet = slotsOf{all, "node"}
			o.Keep = func(context.Context, guard.Case) (string, error) { return "", act(k, acting) }
		}, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
			acting = g
			time.Sleep(time.Minute)
			k.kill(1)
			time.Sleep(10 * time.Second)
			all.mu.Lock()
			held := len(all.holders)
			all.mu.Unlock()
			if r := g.Report(); k.count() != 0 || len(r.Restarts) != 0 || held != 0 || !strings.HasPrefix(r.Withheld, want) {
				t.Errorf("%d restarts, %d in the report, %d slots held, withheld %q, want %q", k.count(), len(r.Restarts), held, r.Withheld, want)
			}
		})
	}
}

// A maintenance of the fleet goes on while the API server does not answer, also for a guard that starts meanwhile.
func TestAnnotatedMaintenance_SurvivesARestartWithoutAServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.json")
	for _, known := range []bool{true, false} {
		run(t, func(k *kubelet, o *guard.Options) {
			o.StateFile = file
			o.Collect = func(ctx context.Context) guard.Evidence {
				e := k.collect(ctx)
				e.Maintenance = guard.NotKnown[guard.Maintenance](time.Now(), "the Node is not known")
				if known {
					e.Maintenance = guard.Read(time.Now(), guard.Maintenance{On: true})
				}
				return e
			}
		}, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
			time.Sleep(time.Minute)
			k.kill(1)
			time.Sleep(time.Minute)
			if r := g.Report(); k.count() != 0 || !strings.HasPrefix(r.Withheld, "maintenance by the annotation") {
				t.Errorf("annotation known: %t: %d restarts, withheld %q", known, k.count(), r.Withheld)
			}
		})
	}
}
