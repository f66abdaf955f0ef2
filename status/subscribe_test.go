package status

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
)

func next(t *testing.T, s *Subscription) Event {
	t.Helper()
	event, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func TestU13_SubscribersSeeTheLifeOfAPod(t *testing.T) {
	pod := newPod("job", restartNever)
	m := standalone(t, pod)
	s := m.Subscribe()
	defer s.Close()
	if _, err := m.SetPodStatus(pod, running(pod, false)); err != nil {
		t.Fatal(err)
	}
	if got := next(t, s); got.Type != Added || got.Name != "job" || got.Status.Phase != v1.PodRunning {
		t.Errorf("first event is %s %s %s, want added", got.Type, got.Name, got.Status.Phase)
	}
	if _, err := m.SetPodStatus(pod, running(pod, true)); err != nil {
		t.Fatal(err)
	}
	if got := next(t, s); got.Type != Updated || !isReady(&got.Status) {
		t.Errorf("second event is %s, ready %v; want updated and ready", got.Type, isReady(&got.Status))
	}
	must(m.TerminatePod(pod))
	if got := next(t, s); got.Type != Removed || got.Status.Phase != v1.PodFailed {
		t.Errorf("third event is %s %s, want the end announced as removal", got.Type, got.Status.Phase)
	}
	m.RemoveOrphanedStatuses(nil)
	s.Close()
	if _, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end came %v, want nothing but ErrClosed", err)
	}
}

// Invariant 6, no blocking: a subscriber that never reads.
func TestSlowSubscriberDelaysNobodyAndGetsTheNewest(t *testing.T) {
	a, b := newPod("a"), newPod("b")
	m := standalone(t, a, b)
	s := m.Subscribe()
	defer s.Close()
	for i := range 1000 {
		for _, pod := range []*v1.Pod{a, b} {
			status := running(pod, true)
			status.Message = fmt.Sprint(i)
			if _, err := m.SetPodStatus(pod, status); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := len(s.events); got > 4 {
		t.Errorf("%d events wait for two pods, want at most two each", got)
	}
	newest := map[string]string{}
	versions := map[string]uint64{}
	for len(s.events) > 0 {
		event := next(t, s)
		if event.Version <= versions[event.Name] {
			t.Errorf("%s: version %d after %d", event.Name, event.Version, versions[event.Name])
		}
		versions[event.Name], newest[event.Name] = event.Version, event.Status.Message
	}
	if newest["a"] != "999" || newest["b"] != "999" {
		t.Errorf("the newest events say %v, want 999 for both", newest)
	}
}

func TestNextWaitsAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := newPod("web")
		m := standalone(t, pod)
		s := m.Subscribe()
		defer s.Close()
		got := make(chan Event, 1)
		go func() { got <- next(t, s) }()
		synctest.Wait()
		if _, err := m.SetPodStatus(pod, running(pod, true)); err != nil {
			t.Fatal(err)
		}
		if event := <-got; event.Type != Added {
			t.Errorf("got %s, want added", event.Type)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

// What waits for a slow receiver is bounded by the number of pods, also if a pod ends again
// and again.
func TestEndsOfAPodDoNotPileUp(t *testing.T) {
	pod := newPod("web")
	m := standalone(t, pod)
	s := m.Subscribe()
	defer s.Close()
	for range 1000 {
		must(m.TerminatePod(pod))
	}
	if got := len(s.events); got > 2 {
		t.Errorf("%d events wait for one pod", got)
	}
	for i := range s.events {
		if e := s.events[i]; e.kind == Removed && e.snapshot.version != 1000 {
			t.Errorf("the event is of version %d, want the newest", e.snapshot.version)
		}
	}
}
