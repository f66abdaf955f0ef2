package campaign

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestPercentile_IsAValueThatWasMeasured(t *testing.T) {
	values := []float64{5, 1, 3, 2, 4}
	for p, want := range map[int]float64{0: 1, 20: 1, 50: 3, 99: 5, 100: 5} {
		if got := Percentile(values, p); got != want {
			t.Errorf("percentile %d of %v: got %v, want %v", p, values, got, want)
		}
	}
	if got := Percentile[int](nil, 50); got != 0 {
		t.Errorf("percentile of nothing: got %d", got)
	}
}

func TestMetrics_OfOneNameAreAddedUp(t *testing.T) {
	got, err := Metrics("# HELP a b 1\n# TYPE a counter\na{x=\"y z\"} 1\na 2.5\nb 3\nbroken x\n")
	if err != nil || got["a"] != 3.5 || got["b"] != 3 || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := Metrics("<html>"); err == nil {
		t.Error("a page without metrics is read")
	}
}

func TestAwait_TriesUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		err := Await(t.Context(), time.Second, func() error {
			if tries++; tries < 4 {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s, want success after 3 s", err, time.Since(began))
		}
	})
}

func TestAwait_EndsWithTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := Await(t.Context(), time.Second, func() error { return fmt.Errorf("statusd: %w", ErrEnded) })
		if !errors.Is(err, ErrEnded) || time.Since(began) != 0 {
			t.Errorf("%v after %s, want the end of the program at once", err, time.Since(began))
		}
	})
}
