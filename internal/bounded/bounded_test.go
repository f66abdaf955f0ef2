package bounded_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/internal/bounded"
)

func TestACallThatReturnsHasItsOwnError(t *testing.T) {
	calls := bounded.New()
	failure := errors.New("failure")
	for _, want := range []error{nil, failure, nil} {
		if err := calls.Do(t.Context(), func() error { return want }); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// One call is left behind, however many are asked for, and calls are made again when it has returned.
func TestACallThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := bounded.New()
		works := make(chan struct{})
		var made atomic.Int32
		do := func() error {
			limited, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return calls.Do(limited, func() error {
				made.Add(1)
				<-works
				return nil
			})
		}
		begin := time.Now()
		for range 3 {
			if err := do(); !errors.Is(err, bounded.ErrHangs) {
				t.Errorf("got %v, want ErrHangs", err)
			}
		}
		if took := time.Since(begin); took != time.Second || made.Load() != 1 {
			t.Errorf("%d calls made within %s, want 1 within 1s", made.Load(), took)
		}
		close(works)
		synctest.Wait()
		if err := do(); err != nil || made.Load() != 2 {
			t.Errorf("after it returned: %v, %d calls made, want 2", err, made.Load())
		}
	})
}

// There is one call at a time, whoever asks.
func TestOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := bounded.New()
		running := 0
		for range 5 {
			go func() {
				err := calls.Do(t.Context(), func() error {
					running++ // the race detector sees two at once
					if running != 1 {
						t.Errorf("%d calls at once", running)
					}
					time.Sleep(time.Second)
					running--
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(time.Minute)
	})
}
