package run

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/probe"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/process/console"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/podstatus"
)

// observed keeps in the history what the parts of a node do, and announces it.
type observed struct{ *console.Console }

// Changed, Accepted, Failed and Removed implement [status.Observer].
func (o observed) Changed(change podstatus.Change) {
	o.History.Changed(change)
	o.Announce(change.UID)
}

// Accepted implements [status.Observer].
func (o observed) Accepted(uid types.UID, version uint64, at time.Time) {
	o.History.Accepted(uid, version, at)
	o.Announce(uid)
}

// Failed implements [status.Observer].
func (o observed) Failed(try podstatus.Undelivered) {
	o.History.Failed(try)
	o.Announce(try.UID)
}

// Removed implements [status.Observer].
func (o observed) Removed(uid types.UID, at time.Time) {
	o.History.Removed(uid, at)
	o.Announce(uid)
}

// record adds a record of a pod.
func (o observed) record(pod *v1.Pod, r history.Record) {
	o.Record(history.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, r)
}

// ProbeVerdict implements [probe.Observer].
func (o observed) ProbeVerdict(v probe.Verdict) {
	r := history.Record{Observed: v.At, Kind: history.KindProbe, Subject: string(v.Kind), Container: v.Container, To: "failed", Message: v.Message}
	if v.Passed {
		r.To = "passed"
	} else if v.Probes > 1 {
		r.Message = fmt.Sprintf("failed %d times, last answer: %s", v.Probes, v.Message)
	}
	o.record(v.Pod, r)
}

// Admitted implements [worker.Observer].
func (o observed) Admitted(pod *v1.Pod, rejection *fit.Rejection, at time.Time) {
	r := history.Record{Observed: at, Kind: history.KindAdmission, To: "admitted"}
	if rejection != nil {
		r.To, r.Reason, r.Message = "rejected", rejection.Reason, rejection.Message
	}
	o.record(pod, r)
}

// HookStep implements [worker.Observer].
func (o observed) HookStep(h worker.HookStep) {
	r := history.Record{Observed: h.At, Kind: history.KindHook, Subject: h.Hook, Container: h.Container, To: "running"}
	if h.Ended {
		r.From, r.To = "running", "succeeded"
		r.Message = "after " + text.Took(h.At.Sub(h.Began))
		if h.Err != nil {
			r.To, r.Message = "failed", r.Message+": "+h.Err.Error()
		}
	}
	o.record(h.Pod, r)
}

// Ending implements [worker.Observer].
func (o observed) Ending(pod *v1.Pod, reason, message string, at time.Time) {
	o.record(pod, history.Record{Observed: at, Kind: history.KindDeletion, To: "ending", Reason: reason, Message: message})
}

// retainInterval is how often the history is compared with the pods of the node.
const retainInterval = time.Minute

// nodeHistory finds changes of a node. It belongs to one goroutine.
type nodeHistory struct {
	*Process
	before   explain.Node
	compared time.Time
}

// records returns the changes since the last call.
func (h *nodeHistory) records() []history.Record {
	now := time.Now()
	if now.Sub(h.compared) > retainInterval && isClosed(h.node.Listed) {
		h.compared = now
		h.console.History.Retain(h.hasPod, now) // pods may have gone while no agent ran, or before their first status
	}
	next := h.node.NodeFacts(now)
	records := nodeRecords(h.before, next)
	h.before = next
	return records
}

// hasPod reports whether a pod is on this node.
func (p *Process) hasPod(uid types.UID) bool {
	if _, known := p.node.Table.ByUID(uid); known {
		return true
	}
	_, known := p.node.Workers.Facts(uid)
	return known
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// nodeRecords are what differs between two looks at the node.
func nodeRecords(before, now explain.Node) (records []history.Record) {
	for _, pressure := range now.Pressure {
		if !slices.Contains(before.Pressure, pressure) {
			records = append(records, history.Record{Subject: string(pressure), From: "False", To: "True"})
		}
	}
	for _, pressure := range before.Pressure {
		if !slices.Contains(now.Pressure, pressure) {
			records = append(records, history.Record{Subject: string(pressure), From: "True", To: "False"})
		}
	}
	switch {
	case now.ShuttingDown && !before.ShuttingDown:
		records = append(records, history.Record{Subject: "shutdown", To: "shutting down"})
	case !now.ShuttingDown && before.ShuttingDown:
		records = append(records, history.Record{Subject: "shutdown", From: "shutting down", To: "canceled"})
	}
	switch {
	case !now.Unreachable.IsZero() && before.Unreachable.IsZero():
		records = append(records, history.Record{Subject: "apiserver", From: "reachable", To: "unreachable",
			Message: "since " + now.Unreachable.UTC().Format(time.RFC3339)})
	case now.Unreachable.IsZero() && !before.Unreachable.IsZero():
		records = append(records, history.Record{Subject: "apiserver", From: "unreachable", To: "reachable"})
	}
	return records
}
