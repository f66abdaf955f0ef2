package agent

import (
	"testing"
	"time"
)

func TestWarningsAreCountedByWhatTheyAreAbout(t *testing.T) {
	var w warnings
	now := time.Now()
	for range 3 {
		w.add("a", "db", "Unhealthy", "Readiness probe failed: refused", now)
		w.add("a", "db", "Unhealthy", "Liveness probe failed: timeout", now)
	}
	w.add("a", "db", "BackOff", "x", now.Add(-2*warningsKept))
	for i := range 2 * warningsPerPod {
		w.add("b", "", string(rune('A'+i)), "x", now)
	}
	if got := w.of("a"); len(got) != 2 || got[0].Count != 3 || got[1].Message != "Liveness probe failed: timeout" {
		t.Errorf("got %+v", got)
	}
	if got := w.of("b"); len(got) != warningsPerPod || got[warningsPerPod-1].Reason != string(rune('A'+2*warningsPerPod-1)) {
		t.Errorf("got %+v", got)
	}
	w.forget("a")
	if got := w.of("a"); got != nil {
		t.Errorf("got %+v after it was forgotten", got)
	}
}
