package instant

import (
	"testing"
	"time"
)

func TestZeroMeansNever(t *testing.T) {
	var never time.Time
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	second := first.Add(time.Second)
	for _, c := range []struct{ a, b, earlier, later time.Time }{
		{first, second, first, second},
		{second, first, first, second},
		{never, first, first, first},
		{first, never, first, first},
		{never, never, never, never},
	} {
		if got := Earlier(c.a, c.b); !got.Equal(c.earlier) {
			t.Errorf("Earlier(%v, %v) = %v, want %v", c.a, c.b, got, c.earlier)
		}
		if got := Later(c.a, c.b); !got.Equal(c.later) {
			t.Errorf("Later(%v, %v) = %v, want %v", c.a, c.b, got, c.later)
		}
	}
}
