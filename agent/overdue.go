package agent

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/status"
)

const (
	// overdueAfter is how long a status may be undelivered before an event is sent.
	overdueAfter = time.Minute
	// overdueInterval is how often undelivered statuses and other writers are checked.
	overdueInterval = 10 * time.Second
	// overduePods is how many pods get their own events at a time. If more pods are overdue, the
	// pods are not the cause, and the Node gets one event for all.
	overduePods = 5
)

// Reasons of events that the kubelet does not have.
const (
	eventDegraded = "StatusSyncDegraded"  // a status is not in the API for long
	eventDrift    = "StatusDriftDetected" // another writer keeps changing a status back
)

// overdue records the events sent for undelivered or overwritten statuses, so that each case has
// one event, however long it lasts.
type overdue struct {
	late, fought map[types.UID]bool
	node         bool // the Node has an event for all that are late
}

// notice is an event to send; for the node if uid is empty.
type notice struct {
	uid             types.UID
	reason, message string
}

// next returns the events that are due. A pod that has recovered may get another event later.
func (o *overdue) next(pending []status.Pending, fights []status.Fight, now time.Time) (due []notice) {
	late, fought := map[types.UID]bool{}, map[types.UID]bool{}
	var pods []notice
	var oldest *status.Pending
	for i := range pending {
		p := &pending[i]
		if p.Err == nil || now.Sub(p.Since) < overdueAfter {
			continue // on its way, or it waits for something else than the API server
		}
		late[p.UID] = true
		if oldest == nil || p.Since.Before(oldest.Since) {
			oldest = p
		}
		if !o.late[p.UID] {
			pods = append(pods, notice{p.UID, eventDegraded, fmt.Sprintf(
				"The status of the pod has not reached the API server since %s (%d tries): %v", p.Since.UTC().Format(time.RFC3339), p.Attempts, p.Err)})
		}
	}
	switch {
	case len(late) <= overduePods:
		due, o.node = pods, false
	case !o.node:
		due, o.node = []notice{{"", eventDegraded, fmt.Sprintf(
			"The statuses of %d pods have not reached the API server, the oldest since %s: %v", len(late), oldest.Since.UTC().Format(time.RFC3339), oldest.Err)}}, true
	}
	for i := range fights {
		f := &fights[i]
		fought[f.UID] = true
		if !o.fought[f.UID] {
			due = append(due, notice{f.UID, eventDrift, fmt.Sprintf(
				"Another writer, %s, keeps changing the status of the pod back; it is restored at growing intervals", f.Writer)})
		}
	}
	o.late, o.fought = late, fought
	return due
}

// followOverdue sends events for undelivered or overwritten statuses.
func (a *Agent) followOverdue(ctx context.Context) error {
	var known overdue
	for backoff.Sleep(ctx, overdueInterval) {
		for _, n := range known.next(a.manager.Pending(), a.manager.Fights(), time.Now()) {
			a.recordNotice(n)
		}
	}
	return nil
}

func (a *Agent) recordNotice(n notice) {
	if n.uid == "" {
		a.events.NodeEvent(v1.EventTypeWarning, n.reason, n.message)
	} else if pod, known := a.table.ByUID(n.uid); known {
		a.events.Event(pod, "", v1.EventTypeWarning, n.reason, n.message)
	}
}
