package queryapi

import (
	"encoding/json"
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
)

// A row has changed if its version or its words have:
//
//   - its fingerprint, which is the row as it would have been at the time of the last event: if facts
//     are the same, so is the fingerprint, however much time has passed;
//   - its shape, which is the codes of the causes: time alone can change them, as when the grace of a
//     container is over.

// fingerprint is a pod's row as of another time.
func fingerprint(p view.Pod, found view.Findings, at time.Time, loc *time.Location) string {
	p.Facts.Now, p.Facts.Untrue = at, timelessUntruths(p.Facts.Untrue)
	summary, _ := view.Summarize(p, loc)
	found.Count(&summary)
	summary.Delivery.LagSeconds = 0
	return encode(summary)
}

// detailFingerprint is everything that is shown of a pod, as of another time.
func detailFingerprint(p view.Pod, records []view.Record, f view.Findings, at time.Time, loc *time.Location) string {
	p.Facts.Now, p.Facts.Untrue = at, timelessUntruths(p.Facts.Untrue)
	detail := view.Detail(p, records, loc)
	f.Add(&detail)
	detail.Delivery.LagSeconds, detail.Load = 0, nil
	detail.Differences, detail.Pictures = timelessDifferences(detail.Differences), timelessPictures(detail.Pictures)
	return encode(detail)
}

// nodeFingerprint leaves out what changes all the time though nothing has happened.
func nodeFingerprint(n view.NodeDetail) string {
	n.Delivery.OldestSeconds, n.Delivery.LeaseRenewed, n.Load = 0, nil, nil
	conditions := append(n.Conditions[:0:0], n.Conditions...)
	for i := range conditions {
		conditions[i].LastHeartbeatTime.Reset()
	}
	n.Conditions = conditions
	n.Sides, n.Differences = timelessSides(n.Sides), timelessDifferences(n.Differences)
	n.Kubelet, n.Logs = timelessReport(n.Kubelet), timelessLogs(n.Logs)
	return encode(n)
}

// due returns the next instant after now at which the explanation expects an event, or zero. Without
// a change by then the explanation may read differently.
func due(e explain.Explanation, now time.Time) (next time.Time) {
	consider := func(n *explain.Next) {
		if n != nil && n.At != nil && n.At.After(now) && (next.IsZero() || n.At.Before(next)) {
			next = *n.At
		}
	}
	var walk func([]explain.Cause)
	walk = func(causes []explain.Cause) {
		for _, c := range causes {
			consider(c.Next)
			walk(c.Causes)
		}
	}
	walk(e.Causes)
	walk(e.Notes)
	if e.Delivery != nil {
		walk([]explain.Cause{*e.Delivery})
	}
	consider(e.Next)
	return next
}

// encode is a value as JSON. The types of this package can always be encoded.
func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "{}"
	}
	return string(data)
}
