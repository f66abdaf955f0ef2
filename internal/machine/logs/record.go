package logs

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/history"
)

// Record is the problem as a line of a history.
func (p Problem) Record() history.Record {
	r := history.Record{Observed: p.At, Kind: history.KindLog, Subject: string(p.Origin), To: string(p.Severity), Reason: p.Reason, Message: p.Text}
	if p.Count > 1 {
		r.Message = fmt.Sprintf("%d times since %s, last: %s", p.Count, p.First.UTC().Format("15:04:05"), p.Text)
	}
	return r
}

// EventType is the type of an Event about the problem.
func (p Problem) EventType() string {
	if p.Severity == Info {
		return v1.EventTypeNormal
	}
	return v1.EventTypeWarning
}
