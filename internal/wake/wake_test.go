package wake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneSignalIsPending(t *testing.T) {
	c := make(chan struct{}, 1)
	Up(c)
	Up(c) // would block here without the default
	<-c
	select {
	case <-c:
		t.Error("a second signal is pending")
	default:
	}
}

func TestQueue_HasEachValueOnceInOrder(t *testing.T) {
	q := NewQueue[string]()
	for _, value := range []string{"a", "b", "a"} {
		q.Add(value)
	}
	<-q.Added()
	first, _ := q.Take()
	q.Add(first) // changed while its receiver works on it
	var rest []string
	for value, ok := q.Take(); ok; value, ok = q.Take() {
		rest = append(rest, value)
	}
	if first != "a" || len(rest) != 2 || rest[0] != "b" || rest[1] != "a" {
		t.Errorf("%q first, then %q: want a, then b and a", first, rest)
	}
	select {
	case <-q.Added():
	default:
		t.Error("no signal after the value that came last")
	}
}

func TestEvery_CallsUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		calls := 0
		Every(ctx, time.Second, func() { calls++ })
		if calls != 3 {
			t.Errorf("%d calls in 3.5 s, want 3", calls)
		}
	})
}
