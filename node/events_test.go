package node

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestChangesOfTheNodeAreEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *nodeStory
		var events []string
		s = newNodeStory(t, func(o *Options) {
			o.Event = func(eventType, reason, message string) {
				s.change(func() { events = append(events, eventType+" "+reason+": "+message) })
			}
		})
		s.reading.BootID = "boot-1"
		expect := func(when string, want ...string) {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			s.change(func() {
				if !slices.Equal(events, want) {
					t.Errorf("%s: got events %q, want %q", when, events, want)
				}
				events = nil
			})
		}
		now := func(reason string) string { return "Normal " + reason + ": Node n status is now: " + reason }
		defer s.run()()
		expect("registered", now("NodeHasSufficientMemory"), now("NodeHasNoDiskPressure"), now("NodeHasSufficientPID"), now("NodeReady"))
		expect("nothing changes")
		s.change(func() { s.notReady = errors.New("runtime is down") })
		expect("not ready", now("NodeNotReady"))
		s.change(func() { s.notReady = nil; s.reading.MemoryAvailable = 0 })
		expect("ready, and short of memory", now("NodeHasInsufficientMemory"), now("NodeReady"))
		s.change(func() { s.unread = errors.New("no /proc") })
		expect("not readable")
		s.change(func() { s.unread, s.reading.BootID = nil, "boot-2" })
		expect("rebooted", now("NodeHasInsufficientMemory"), now("NodeHasNoDiskPressure"), now("NodeHasSufficientPID"),
			"Warning Rebooted: Node n has been rebooted, boot id: boot-2")
		for _, closed := range []bool{true, false} {
			node := s.get().DeepCopy()
			node.Spec.Unschedulable = closed
			if err := s.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
				t.Fatal(err)
			}
			want := now("NodeSchedulable")
			if closed {
				want = now("NodeNotSchedulable")
			}
			expect("cordoned or not", want)
		}
	})
}
