package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// looks runs a loop until a time and returns when it looked, in seconds.
func looks(t *testing.T, until time.Duration, script func(l *Loop), look func(n int) error) []float64 {
	t.Helper()
	l, err := New(10*time.Second, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), until)
	defer cancel()
	start := time.Now()
	var at []float64
	go script(l)
	l.Run(ctx, func(context.Context) error {
		at = append(at, time.Since(start).Seconds())
		return look(len(at))
	})
	return at
}

func TestLooksAtThePaceAndEarlierOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := looks(t, 25*time.Second, func(l *Loop) {
			for range 5 {
				time.Sleep(100 * time.Millisecond) // five requests within the first second are one look
				l.Refresh()
			}
		}, func(int) error { return nil })
		want := []float64{0, 1, 11, 21}
		if len(got) != len(want) {
			t.Fatalf("looked at %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("looked at %v, want %v", got, want)
			}
		}
	})
}

func TestFailuresAreRepeatedWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := looks(t, time.Minute, func(*Loop) {}, func(n int) error {
			if n < 8 {
				return errors.New("no")
			}
			return nil
		})
		for i := 1; i < len(got); i++ {
			if wait := got[i] - got[i-1]; wait < 0.8 || wait > 10 {
				t.Errorf("look %d after %.1f s, want between the least time and the pace: %v", i+1, wait, got)
			}
		}
		if len(got) < 8 || got[2]-got[1] < got[1]-got[0] {
			t.Errorf("looked at %v, want waits that grow", got)
		}
	})
}

func TestPaceThatCannotBe(t *testing.T) {
	for _, c := range [][2]time.Duration{{0, 1}, {1, 0}, {1, 2}} {
		if _, err := New(c[0], c[1]); err == nil {
			t.Errorf("pace %v, least %v: no error", c[0], c[1])
		}
	}
}
