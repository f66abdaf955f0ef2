package observer

import (
	"testing"
	"time"
)

// await looks until a state is reached. The test's own timeout is the only bound.
func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !reached() {
		select {
		case <-t.Context().Done():
			t.Fatalf("not reached: %s", what)
		case <-ticker.C:
		}
	}
}
