package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// enact lets a pod go through its phases, one a second, and reports how it was followed.
// The pod is gone one second after it is asked to end.
func enact(t *testing.T, lasts time.Duration, phases ...v1.PodPhase) (r recording, asked []time.Duration) {
	events := make(chan event)
	end := make(chan struct{}, 2) // more than once would be the error to be seen
	start := time.Now()
	go func() {
		defer close(events)
		for _, phase := range phases {
			events <- event{kind: watch.Modified, row: printed{status: string(phase)}, pod: &v1.Pod{Status: v1.PodStatus{Phase: phase}}}
			time.Sleep(time.Second)
		}
		<-end
		time.Sleep(time.Second)
		events <- event{kind: watch.Deleted, pod: &v1.Pod{}}
	}()
	r, err := follow(t.Context(), events, lasts, func(context.Context) error {
		asked = append(asked, time.Since(start))
		end <- struct{}{}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, asked
}

func TestFollowDeletesAPodThatHasEndedOnceItHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, asked := enact(t, 0, v1.PodPending, v1.PodPending, v1.PodSucceeded)
		if want := 2*time.Second + settle; len(asked) != 1 || asked[0] != want {
			t.Errorf("deleted after %v, want once after %v", asked, want)
		}
		if len(r) != 3 || !r[2].state.equal(gone) {
			t.Errorf("recorded\n%swant three states, the repeated one once, the last one gone", r)
		}
	})
}

func TestFollowDeletesALastingPodInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, asked := enact(t, 10*time.Second, v1.PodPending, v1.PodRunning)
		if len(asked) != 1 || asked[0] != 10*time.Second {
			t.Errorf("deleted after %v, want once after 10s", asked)
		}
	})
}

func TestFollowGoesOnWhenAPodIsGoneAndComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event)
		end := make(chan struct{})
		go func() {
			running := event{kind: watch.Modified, row: printed{status: "Running"}, pod: &v1.Pod{}}
			deleted := event{kind: watch.Deleted, pod: &v1.Pod{}}
			for _, e := range []event{running, deleted, running} {
				events <- e
			}
			<-end
			events <- deleted
		}()
		r, err := follow(t.Context(), events, time.Minute, func(context.Context) error {
			close(end)
			return nil
		})
		if err != nil || len(r) != 4 {
			t.Errorf("recorded\n%s(%v) want running and gone, twice", r, err)
		}
	})
}

func TestTypicalIsTheMostFrequentLifeAndThenTheFullest(t *testing.T) {
	pending, running := state{headline: "Pending"}, state{headline: "Running"}
	full, brief := lifeOf(pending, running, gone), lifeOf(running, gone)
	for _, c := range []struct {
		story string
		runs  []recording
		want  recording
	}{
		{"two against one", []recording{full, brief, brief}, brief},
		{"one each", []recording{brief, full}, full},
		{"one each, the other way round", []recording{full, brief}, full},
	} {
		if got := typical(c.runs); got.String() != c.want.String() {
			t.Errorf("%s: typical is\n%swant\n%s", c.story, got, c.want)
		}
	}
}
