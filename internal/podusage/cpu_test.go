package podusage

import (
	"testing"
	"time"
)

func TestRatesAreTakenOverASecond(t *testing.T) {
	var c CPUCount
	at := time.Unix(1000, 0)
	for _, step := range []struct {
		after time.Duration
		used  uint64
		want  uint64 // 0 is unknown
	}{
		{0, 5e9, 0},
		{500 * time.Millisecond, 6e9, 0},
		{2 * time.Second, 8e9, 1_500_000_000},
		{2100 * time.Millisecond, 9e9, 1_500_000_000},
		{4 * time.Second, 7e9, 500_000_000}, // of which one was measured in between
		{6 * time.Second, 9e9, 1},
	} {
		got := c.Next(at.Add(step.after), step.used)
		switch {
		case step.want == 0 && got.NanoCores != nil, step.want > 1 && (got.NanoCores == nil || *got.NanoCores != step.want), step.want == 1 && *got.NanoCores != 0:
			t.Errorf("after %s: got %v, want %d", step.after, got.NanoCores, step.want)
		}
	}
}
