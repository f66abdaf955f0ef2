package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitsGrowToTheLimit(t *testing.T) {
	s := Schedule{First: time.Second, Limit: time.Minute}
	for attempt := 1; attempt < 100; attempt++ {
		full := time.Minute
		if attempt <= 6 {
			full = time.Second << (attempt - 1)
		}
		least, most := s.Wait(attempt, 1), s.Wait(attempt, 0)
		if most != full || least != full*4/5 {
			t.Fatalf("attempt %d waits between %v and %v, want between %v and %v", attempt, least, most, full*4/5, full)
		}
		if got := s.Random(attempt); got < least || got > most {
			t.Fatalf("attempt %d waits %v at random, want between %v and %v", attempt, got, least, most)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !Sleep(t.Context(), time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("slept %v, want a minute", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if Sleep(ctx, time.Hour) {
			t.Error("the context has ended, and Sleep reports that it lasts")
		}
		if Sleep(ctx, 0) || !Sleep(t.Context(), -time.Second) {
			t.Error("without a pause, Sleep reports whether the context lasts")
		}
	})
}

// The time may be over before Sleep looks. A context that has ended is then not taken for one that lasts.
func TestSleepReportsAContextThatHasEndedBeforeIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10_000 { // some of them find both ended
		if Sleep(ctx, 1) {
			t.Fatal("the context has ended, and Sleep reports that it lasts")
		}
	}
}
