package run

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A question that hangs does not hang the caller, is asked once, and is asked again once it was answered.
func TestAQuestionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int32
		answers := make(chan error)
		q := question{every: 10 * time.Second, patience: 2 * time.Second, ask: func(context.Context) error {
			count.Add(1)
			return <-answers
		}}
		look := func() asked { return q.look(t.Context()) }
		if got := look(); !got.hangs || got.took != 2*time.Second || !got.since.IsZero() {
			t.Errorf("while it hangs: %+v", got)
		}
		time.Sleep(time.Minute)
		if got := look(); !got.hangs || got.took != time.Minute+4*time.Second || count.Load() != 1 {
			t.Errorf("after a minute: %+v, asked %d times", got, count.Load())
		}
		answers <- errors.New("broken")
		synctest.Wait()
		go func() { answers <- nil }() // what failed is asked again at once
		got := look()
		if got.hangs || got.err != nil || got.since.IsZero() || count.Load() != 2 {
			t.Errorf("once it is answered: %+v, asked %d times", got, count.Load())
		}
		time.Sleep(9 * time.Second)
		if again := look(); again != got || count.Load() != 2 {
			t.Errorf("before the next is due: %+v, asked %d times", again, count.Load())
		}
		q.wait()
	})
}
