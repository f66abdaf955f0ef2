package status

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBudgetNeverExceedsRateAndBurst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		qps, burst := rapid.Float64Range(0.5, 100).Draw(t, "qps"), rapid.IntRange(1, 20).Draw(t, "burst")
		b := newBudget(qps, burst, epoch)
		now, taken := epoch, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "ms")) * time.Millisecond)
			if b.take(now, true) {
				taken++
			} else if at := b.when(now, true); !at.After(now) {
				t.Fatalf("there is no token at %v, but when says %v", now, at)
			} else if b.take(at, true); b.tokens < 0 {
				t.Fatalf("the bucket is overdrawn: %v", b.tokens)
			} else {
				now, taken = at, taken+1
			}
			if limit := float64(burst) + now.Sub(epoch).Seconds()*qps + 0.01; float64(taken) > limit {
				t.Fatalf("%d tokens in %v at %v qps, burst %d", taken, now.Sub(epoch), qps, burst)
			}
		}
	})
}

func TestBudgetCharge(t *testing.T) {
	b := newBudget(1, 1, epoch)
	if !b.take(epoch, true) {
		t.Fatal("a full bucket has no token")
	}
	b.charge(0) // no request was made: the token is back
	if !b.take(epoch, true) {
		t.Error("the token of a turn without a request was not given back")
	}
	b.charge(2) // one token paid for two requests
	if got, want := b.when(epoch, true), after(2*time.Second); got.Before(want) {
		t.Errorf("after two requests for one token the next is at %v, want not before %v", got, want)
	}
}
