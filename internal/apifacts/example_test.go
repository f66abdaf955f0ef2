package apifacts_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/apifacts"
)

// Warnings of other pods, and events that are none, are left out.
func ExampleFromEvents() {
	now := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	warnings := apifacts.FromEvents([]v1.Event{
		*event("FailedMount", "1", v1.EventTypeWarning, "", now),
		*event("Scheduled", "1", v1.EventTypeNormal, "", now),
		*event("BackOff", "2", v1.EventTypeWarning, "", now),
	}, pod())
	for _, w := range warnings {
		fmt.Println(w.Reason)
	}
	// Output: FailedMount
}
