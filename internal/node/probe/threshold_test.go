package probe

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestQ8_ThresholdsCountEqualResultsInARow spells series of results with + (success),
// - (failure) and ? (could not be carried out), and what is decided after each of them.
func TestQ8_ThresholdsCountEqualResultsInARow(t *testing.T) {
	letters := map[byte]result{'+': success, '-': failure, '?': unknown}
	for _, c := range []struct {
		story               string
		successes, failures int
		found, decided      string
	}{
		{"one of each is enough", 1, 1, "+-+", "+-+"},
		{"three failures", 1, 3, "+---+", "+??-+"},
		{"a success interrupts", 1, 3, "--+---", "??+??-"},
		{"two successes", 2, 1, "+-++", "?-?+"},
		{"a failure interrupts", 3, 2, "++-+++", "?????+"},
		{"decided again and again", 2, 2, "++++", "?+++"},
		{"no answer neither counts nor interrupts", 2, 2, "+?+-??-", "??+???-"},
	} {
		t.Run(c.story, func(t *testing.T) {
			limits := schedule{successes: c.successes, failures: c.failures}
			var so streak
			for i := range len(c.found) {
				var decided result
				so, decided = so.next(letters[c.found[i]], limits)
				if want := letters[c.decided[i]]; decided != want {
					t.Fatalf("after %s with thresholds %d/%d: got %v, want %v", c.found[:i+1], c.successes, c.failures, decided, want)
				}
			}
		})
	}
}

// TestStreakAgreesWithTheWholeHistory compares with a model that keeps every result.
func TestStreakAgreesWithTheWholeHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := schedule{successes: rapid.IntRange(1, 4).Draw(t, "successes"), failures: rapid.IntRange(1, 4).Draw(t, "failures")}
		var so streak
		var history []result
		for _, found := range rapid.SliceOfN(rapid.SampledFrom([]result{unknown, success, failure}), 1, 30).Draw(t, "results") {
			var got result
			so, got = so.next(found, limits)
			if found != unknown {
				history = append(history, found)
			}
			want := unknown
			if found != unknown {
				want = lastEqual(history, limits)
			}
			if got != want {
				t.Fatalf("thresholds %d/%d, results %v, the last one %v: got %v, want %v", limits.successes, limits.failures, history, found, got, want)
			}
		}
	})
}

// lastEqual is what the newest results decide by themselves.
func lastEqual(history []result, limits schedule) result {
	for decided, n := range map[result]int{success: limits.successes, failure: limits.failures} {
		if n <= len(history) && !slices.ContainsFunc(history[len(history)-n:], func(r result) bool { return r != decided }) {
			return decided
		}
	}
	return unknown
}

func TestScheduleHasTheDefaultsOfTheAPI(t *testing.T) {
	got := scheduleOf(&v1.Probe{})
	want := schedule{period: 10 * time.Second, timeout: time.Second, successes: 1, failures: 3}
	if got != want {
		t.Errorf("an empty probe: got %+v, want %+v", got, want)
	}
	got = scheduleOf(&v1.Probe{InitialDelaySeconds: 1, PeriodSeconds: 2, TimeoutSeconds: 3, SuccessThreshold: 4, FailureThreshold: 5})
	want = schedule{initialDelay: time.Second, period: 2 * time.Second, timeout: 3 * time.Second, successes: 4, failures: 5}
	if got != want {
		t.Errorf("a probe that says everything: got %+v, want %+v", got, want)
	}
}

func TestTheFirstProbeDoesNotWaitForAClockThatWasSetBack(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := schedule{initialDelay: 10 * time.Second}
	for _, c := range []struct {
		story   string
		started time.Time
		want    time.Duration
	}{
		{"just started", now, 10 * time.Second},
		{"started 4 s ago", now.Add(-4 * time.Second), 6 * time.Second},
		{"started long ago", now.Add(-time.Hour), 0},
		{"started in 1970, before the clock was set", time.Unix(12, 0), 0},
		{"the clock went back a day", now.Add(24 * time.Hour), 0},
		{"the clock is 0.3 s behind", now.Add(300 * time.Millisecond), 10 * time.Second},
	} {
		if got := s.first(c.started, now); got != c.want {
			t.Errorf("%s: the first probe waits %s, want %s", c.story, got, c.want)
		}
	}
}
