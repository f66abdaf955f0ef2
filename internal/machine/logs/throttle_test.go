package logs

import (
	"context"
	"testing"
	"time"
)

// The throttle keeps work to its share. What a busy machine has withheld can be taken later, and no more than that of a second.
func TestTheThrottleKeepsToItsShare(t *testing.T) {
	begin := time.Now()
	now, spent := begin, time.Hour
	limit := throttle{
		share: 0.1, spent: func() time.Duration { return spent }, now: func() time.Time { return now },
		sleep: func(_ context.Context, d time.Duration) bool { now = now.Add(d); return true },
	}
	limit.begin()
	work := func(withheld time.Duration) time.Duration { // 100 ms of it
		begin := now
		for range 1000 {
			spent += 100 * time.Microsecond
			now = now.Add(100*time.Microsecond + withheld)
			limit.worked(t.Context())
		}
		return now.Sub(begin)
	}
	near := func(what string, got, want time.Duration) {
		if got < want-25*time.Millisecond || got > want+25*time.Millisecond {
			t.Errorf("%s: 100 ms of work take %v, want %v", what, got, want)
		}
	}
	near("an idle machine", work(0), time.Second)
	near("a busy machine", work(500*time.Microsecond), time.Second)
	near("a machine that is too busy", work(10*time.Millisecond), 10100*time.Millisecond)
	near("after that", work(0), 100*time.Millisecond)
	near("and then, with what is left of it", work(0), 900*time.Millisecond)
}
