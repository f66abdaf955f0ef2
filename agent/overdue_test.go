package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/status"
)

// A status that is not in the API for long, and another writer, are one event each, however long it
// lasts; with many pods, one event of the node.
func TestOverdueStatusesAreOneEventEach(t *testing.T) {
	start := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	refused := errors.New("pods \"web\" is forbidden")
	pending := func(n int) (list []status.Pending) {
		for i := range n {
			list = append(list, status.Pending{UID: types.UID(fmt.Sprint("u", i)), Since: start, Attempts: 3, Err: refused})
		}
		return list
	}
	fights := []status.Fight{{UID: "u9", Writer: "painter", Rounds: 4}}
	waits := []status.Pending{{UID: "u1", Since: start, Reason: "containers could run"}}
	var o overdue
	for i, step := range []struct {
		after   time.Duration
		pending []status.Pending
		fights  []status.Fight
		want    string // reasons with what they are about
	}{
		{30 * time.Second, pending(1), nil, ""}, // may still succeed
		{60 * time.Second, waits, nil, ""},
		{70 * time.Second, pending(1), fights, "u0:StatusSyncDegraded u9:StatusDriftDetected"},
		{80 * time.Second, pending(2), fights, "u1:StatusSyncDegraded"},
		{time.Hour, pending(2), fights, ""},
		{time.Hour, pending(60), nil, "node:StatusSyncDegraded"},
		{time.Hour, pending(61), nil, ""},
		{time.Hour, pending(2), nil, ""},
		{time.Hour, nil, nil, ""},
		{2 * time.Hour, pending(1), fights, "u0:StatusSyncDegraded u9:StatusDriftDetected"}, // another time
	} {
		var got []string
		for _, n := range o.next(step.pending, step.fights, start.Add(step.after)) {
			about := string(n.uid)
			if about == "" {
				about = "node"
			}
			got = append(got, about+":"+n.reason)
			if n.reason == eventDegraded && !strings.Contains(n.message, "since 2026-03-14T10:00:00Z") || n.reason == eventDrift && !strings.Contains(n.message, "painter") {
				t.Errorf("step %d: the message is %q", i, n.message)
			}
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("step %d: got %v, want %q", i, got, step.want)
		}
	}
}
