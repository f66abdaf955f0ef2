package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
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

// drain returns the events that wait.
func drain(t *testing.T, s *Subscription) (events []Event) {
	t.Helper()
	for len(s.order) > s.empty {
		events = append(events, next(t, s))
	}
	return events
}

// Invariant 6, no blocking: a subscriber that never reads.
func TestSlowSubscriberDelaysNoOtherAndGetsTheNewest(t *testing.T) {
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
	newest := map[string]string{}
	versions := map[string]uint64{}
	events := drain(t, s)
	if len(events) > 4 {
		t.Errorf("%d events wait for two pods, want at most two each", len(events))
	}
	for _, event := range events {
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
	_, err := m.SetPodStatus(pod, running(pod, true))
	must(err)
	next(t, s)
	for range 1000 {
		must(m.TerminatePod(pod))
	}
	newest, _ := m.Delivery(pod.UID)
	events := drain(t, s)
	if len(events) != 1 || events[0].Type != Removed || events[0].Version != newest.Version {
		t.Errorf("got %d events, the first %+v, want the newest removal alone", len(events), events)
	}
}

func TestASubscriptionBeginsWithWhatIsKnown(t *testing.T) {
	a, b, gone := newPod("a"), newPod("b"), newPod("gone", restartNever)
	m := standalone(t, a, b, gone)
	for _, pod := range []*v1.Pod{b, a, gone} {
		if _, err := m.SetPodStatus(pod, running(pod, false)); err != nil {
			t.Fatal(err)
		}
	}
	must(m.TerminatePod(gone))
	s := m.Subscribe()
	defer s.Close()
	if _, err := m.SetPodStatus(b, running(b, true)); err != nil {
		t.Fatal(err)
	}
	m.Forget(a.UID)
	var got []string
	for _, e := range drain(t, s) {
		got = append(got, fmt.Sprint(e.Type, " ", e.Name, " ", isReady(&e.Status)))
	}
	if want := []string{"added b true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A subscription that begins in a storm misses nothing and repeats nothing: what its events say in
// the end is what the cache says.
func TestASubscriptionThatBeginsInAStormIsComplete(t *testing.T) {
	var all []*v1.Pod
	for i := range 20 {
		all = append(all, newPod(fmt.Sprint("pod-", i), restartNever))
	}
	m := standalone(t, all...)
	var storm sync.WaitGroup
	for i := range 4 {
		storm.Go(func() {
			for k := range 400 {
				pod := all[(i*7+k)%len(all)]
				status := running(pod, k%2 == 0)
				status.Message = fmt.Sprint(i, k)
				m.SetPodStatus(pod, status) // which may find the pod finished
				switch {
				case k%41 == 40:
					m.TerminatePod(pod)
				case k%53 == 52:
					m.Forget(pod.UID)
				}
			}
		})
	}
	var subscriptions []*Subscription
	for range 50 {
		subscriptions = append(subscriptions, m.Subscribe())
		runtime.Gosched()
	}
	storm.Wait()
	for i, s := range subscriptions {
		versions, last := map[string]uint64{}, map[string]uint64{}
		for _, e := range drain(t, s) {
			// The removal of a pod shows the last version once more.
			if e.Version < last[e.Name] || e.Version == last[e.Name] && e.Type != Removed {
				t.Errorf("subscription %d: %s %s: version %d after %d", i, e.Name, e.Type, e.Version, last[e.Name])
			}
			last[e.Name], versions[e.Name] = e.Version, e.Version
			if e.Type == Removed {
				delete(versions, e.Name)
			}
		}
		want := map[string]uint64{}
		for _, s := range m.Statuses() {
			if !s.Finished {
				want[s.Name] = s.Version
			}
		}
		if !maps.Equal(versions, want) {
			t.Errorf("subscription %d has %v, the cache %v", i, versions, want)
		}
		s.Close()
	}
}

// Ten thousand pods come and go while a receiver does not receive: nothing waits for it.
func TestPodsThatCameAndWent_DoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Client = nil })
		known := w.create("known")
		w.set(known, running(known, true))
		s := w.manager.Subscribe()
		defer s.Close()
		next(t, s)
		for i := range 10_000 {
			pod := newPod(fmt.Sprint("pod-", i))
			w.set(pod, running(pod, true))
			if i%2 == 0 {
				must(w.manager.TerminatePod(pod))
			}
			w.manager.Forget(pod.UID)
			w.manager.Forget(known.UID) // and the same pod again and again
			w.set(known, running(known, true))
		}
		if got := len(s.order); got > 200 {
			t.Errorf("%d pods wait for the receiver", got)
		}
		for _, want := range []EventType{Removed, Added} {
			if e := next(t, s); e.Type != want || e.UID != known.UID {
				t.Errorf("got %s of %s, want %s of the pod that is there", e.Type, e.UID, want)
			}
		}
		if e, ok := s.pop(); ok {
			t.Errorf("there is more: %s of %s", e.kind, e.uid)
		}
	})
}
