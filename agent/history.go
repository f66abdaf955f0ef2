package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/fit"
	"github.com/statusd/statusd/history"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/probe"
	"github.com/statusd/statusd/worker"
)

// historyFile is the history in the state directory.
const historyFile = "history"

// wireHistory makes the history, which sees what the status manager does first.
func (a *Agent) wireHistory() {
	a.history = history.New(history.Options{File: filepath.Join(a.config.StateDir, historyFile), Logger: a.log})
	a.changes.next = observed{a.history, a}
	a.events.Warned = a.warnings.add
}

// observed passes on to the history what the parts of the agent do.
type observed struct {
	*history.Store // for the status manager
	agent          *Agent
}

// Removed is called when the status of a pod is no longer kept.
func (o observed) Removed(uid types.UID, at time.Time) {
	o.agent.warnings.forget(uid)
	o.Store.Removed(uid, at)
}

// record adds a record of a pod and has its explanation looked at again.
func (o observed) record(pod *v1.Pod, r history.Record) {
	o.Add(history.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, r)
	o.agent.changes.Announce(pod.UID)
}

// ProbeVerdict is that of a [probe.Observer].
func (o observed) ProbeVerdict(v probe.Verdict) {
	r := history.Record{Observed: v.At, Kind: history.KindProbe, Subject: string(v.Kind), Container: v.Container, To: "failed", Message: v.Message}
	if v.Passed {
		r.To = "passed"
	} else if v.Probes > 1 {
		r.Message = fmt.Sprintf("failed %d times, last answer: %s", v.Probes, v.Message)
	}
	o.record(v.Pod, r)
}

// Admitted is that of a [worker.Observer].
func (o observed) Admitted(pod *v1.Pod, rejection *fit.Rejection, at time.Time) {
	r := history.Record{Observed: at, Kind: history.KindAdmission, To: "admitted"}
	if rejection != nil {
		r.To, r.Reason, r.Message = "rejected", rejection.Reason, rejection.Message
	}
	o.record(pod, r)
}

// HookStep is that of a [worker.Observer].
func (o observed) HookStep(h worker.HookStep) {
	r := history.Record{Observed: h.At, Kind: history.KindHook, Subject: h.Hook, Container: h.Container, To: "running"}
	if h.Ended {
		r.From, r.To = "running", "succeeded"
		r.Message = "after " + h.At.Sub(h.Began).Round(time.Millisecond).String()
		if h.Err != nil {
			r.To, r.Message = "failed", r.Message+": "+h.Err.Error()
		}
	}
	o.record(h.Pod, r)
}

// Ending is that of a [worker.Observer].
func (o observed) Ending(pod *v1.Pod, reason, message string, at time.Time) {
	o.record(pod, history.Record{Observed: at, Kind: history.KindDeletion, To: "ending", Reason: reason, Message: message})
}

// nodeInterval is how often the node is compared with what its history says.
const nodeInterval = 2 * time.Second

// followNode keeps the history of the node itself.
func (a *Agent) followNode(ctx context.Context) error {
	add := func(r history.Record) {
		r.Kind = history.KindNode
		a.history.Add(history.Ref{}, r)
		a.changes.Announce("")
	}
	add(history.Record{Subject: "agent", To: "started", Message: strings.TrimSpace("version " + a.options.Version)})
	var before explain.Node
	var compared time.Time
	for backoff.Sleep(ctx, nodeInterval) {
		now := time.Now()
		if now.Sub(compared) > time.Minute && a.dispatcher.synced() {
			compared = now
			a.history.Retain(a.hasPod, now) // pods may have gone while no agent ran, or before their first status
		}
		next := a.nodeFacts(now)
		for _, r := range nodeRecords(before, next) {
			add(r)
		}
		before = next
	}
	add(history.Record{Subject: "agent", From: "started", To: "stopped"})
	return nil
}

// hasPod reports whether a pod is on this node.
func (a *Agent) hasPod(uid types.UID) bool {
	if _, known := a.table.ByUID(uid); known {
		return true
	}
	_, known := a.workers.Facts(uid)
	return known
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
