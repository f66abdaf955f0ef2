package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// slots is the bound of a cluster.
type slots struct {
	mu      sync.Mutex
	holders map[string]time.Time
	max     int
	err     error // the API server does not answer
}

// slotsOf are those of one node.
type slotsOf struct {
	*slots
	node string
}

func (s slotsOf) Acquire(_ context.Context, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for node, at := range s.holders {
		if time.Since(at) > 3*time.Minute {
			delete(s.holders, node)
		}
	}
	if _, own := s.holders[s.node]; !own && len(s.holders) >= s.max {
		return fmt.Errorf("%w: %d of them (%s)", guard.ErrFleetBusy, len(s.holders), reason)
	}
	s.holders[s.node] = time.Now()
	return nil
}

func (s slotsOf) Release(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holders, s.node)
	return nil
}

// A restart waits while other nodes have all slots, and says so.
func TestFleet_BusyWithholdsARestart(t *testing.T) {
	all := &slots{holders: map[string]time.Time{}}
	run(t, func(_ *kubelet, o *guard.Options) { o.Fleet = slotsOf{all, "node"} }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		time.Sleep(time.Minute)
		synctest.Wait() // for the answer about the slots, if the guard asks in this very moment
		if r := g.Report(); k.count() != 0 || !strings.HasPrefix(r.Withheld, "other nodes are restarting their kubelets") || r.NextRestart.IsZero() {
			t.Errorf("%d restarts, withheld %q until %v", k.count(), r.Withheld, r.NextRestart)
		}
		all.mu.Lock()
		all.max = 1
		all.mu.Unlock()
		time.Sleep(3 * time.Minute)
		all.mu.Lock()
		held := len(all.holders)
		all.mu.Unlock()
		if k.count() != 1 || g.Report().Health != guard.Healthy || held != 0 {
			t.Errorf("%d restarts, %s, %d slots held", k.count(), g.Report().Health, held)
		}
	})
}

// A kubelet that is healthy for a moment only, as a version that crashes is, does not hand its slot to the next node.
func TestFleet_SlotIsHeldUntilTheKubeletStaysHealthy(t *testing.T) {
	all := &slots{holders: map[string]time.Time{}, max: 1}
	held := func() int {
		all.mu.Lock()
		defer all.mu.Unlock()
		return len(all.holders)
	}
	run(t, func(_ *kubelet, o *guard.Options) { o.Fleet = slotsOf{all, "node"} }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		for k.count() == 0 || g.Report().Health != guard.Healthy {
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Second)
		if got := held(); got != 1 {
			t.Errorf("%d slots held 20 s after the kubelet became healthy, want 1", got)
		}
		time.Sleep(20 * time.Second)
		if got := held(); got != 0 {
			t.Errorf("%d slots held 40 s after the kubelet became healthy, want none", got)
		}
	})
}

// asked notes when a slot is first asked for.
type asked struct {
	slotsOf
	at *time.Time
}

func (a asked) Acquire(ctx context.Context, reason string) error {
	a.mu.Lock()
	if a.at.IsZero() {
		*a.at = time.Now()
	}
	a.mu.Unlock()
	return a.slotsOf.Acquire(ctx, reason)
}

// Nodes that lose their leases at the same moment do not ask for a slot at the same moment.
func TestFleet_NodesWaitAtRandom(t *testing.T) {
	times := map[time.Time]bool{}
	for range 5 {
		var at time.Time
		run(t, func(_ *kubelet, o *guard.Options) {
			o.Fleet = asked{slotsOf{&slots{holders: map[string]time.Time{}, max: 1}, "node"}, &at}
		}, func(t *testing.T, k *kubelet, _ *guard.Guard, _ *notices) {
			time.Sleep(time.Minute)
			k.deadlock()
			time.Sleep(5 * time.Minute)
		})
		times[at] = true
	}
	if len(times) < 2 || times[time.Time{}] {
		t.Errorf("five nodes asked at %v, want different times", times)
	}
}

// A node that has seen others restart their kubelets restarts none when the answers about the slots do not come any more, until that is long ago.
func TestFleet_UnknownAfterBusyWithholds(t *testing.T) {
	all := &slots{holders: map[string]time.Time{}}
	run(t, func(_ *kubelet, o *guard.Options) { o.Fleet = slotsOf{all, "node"} }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		time.Sleep(time.Minute)
		all.mu.Lock()
		all.err = errors.New("context deadline exceeded")
		all.mu.Unlock()
		time.Sleep(8 * time.Minute)
		synctest.Wait() // for the answer about the slots, if the guard asks in this very moment
		if r := g.Report(); k.count() != 0 || !strings.Contains(r.Withheld, "is not known: context deadline exceeded") {
			t.Errorf("%d restarts, withheld %q", k.count(), r.Withheld)
		}
		time.Sleep(5 * time.Minute)
		if k.count() != 1 {
			t.Errorf("%d restarts, want one when the others are long ago", k.count())
		}
	})
}

// One answer about the slots that does not come is no leave to restart.
func TestFleet_OneUnknownAnswerRestartsNothing(t *testing.T) {
	all := &slots{holders: map[string]time.Time{}, err: errors.New("context deadline exceeded")}
	run(t, func(_ *kubelet, o *guard.Options) { o.Fleet = slotsOf{all, "node"} }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		for !strings.Contains(g.Report().Withheld, "is not known") {
			time.Sleep(time.Second)
		}
		if k.count() != 0 {
			t.Errorf("%d restarts after the first answer that did not come", k.count())
		}
		all.mu.Lock()
		all.err = nil // the server is slow, and others have all slots
		all.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait() // for the answer about the slots, if the guard asks in this very moment
		if r := g.Report(); k.count() != 0 || !strings.HasPrefix(r.Withheld, "other nodes") {
			t.Errorf("%d restarts, withheld %q", k.count(), r.Withheld)
		}
	})
}

// Without an answer about the slots, a dead process is restarted at the second try and a stale lease is not.
func TestFleet_UnknownHoldsBackWhatThisMachineDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		name     string
		hurt     func(k *kubelet)
		restarts int
	}{
		{"a dead process", func(k *kubelet) { k.kill(1) }, 1},
		{"a stale lease", func(k *kubelet) { k.deadlock() }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := &slots{err: errors.New("connection refused")}
			run(t, func(_ *kubelet, o *guard.Options) { o.Fleet = slotsOf{all, "node"} }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
				time.Sleep(time.Minute)
				c.hurt(k)
				said := false
				for range 4 * 60 { // between two tries there is a delay at random
					time.Sleep(time.Second)
					said = said || strings.Contains(g.Report().Withheld, "is not known: connection refused")
				}
				if k.count() != c.restarts || !said {
					t.Errorf("%d restarts, want %d; says that the bound is not known: %t", k.count(), c.restarts, said)
				}
			})
		})
	}
}

// What a guard that may not restart would have done is in its report, once for each time that the kubelet was unhealthy.
func TestWould_NotesRestartsOfADryRun(t *testing.T) {
	run(t, func(_ *kubelet, o *guard.Options) { o.Policy.Restart = false }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		for range 2 {
			time.Sleep(5 * time.Minute)
			k.kill(1)
			time.Sleep(20 * time.Minute)
			if err := k.Restart(t.Context()); err != nil { // by an operator
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Minute)
		would := g.Report().Would
		if len(would) != 2 || would[0].Reason != guard.ProcessGone || would[1].At.Sub(would[0].At) < 20*time.Minute {
			t.Errorf("got %+v, want one for each end of the process", would)
		}
		if k.count() != 2 {
			t.Errorf("the guard has restarted the kubelet %d times", k.count()-2)
		}
	})
}
