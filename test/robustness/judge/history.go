// Package judge looks for violations of statusd's invariants in a history. Validators are pure functions of the records; a history that is
// cut at any record has no more violations than the whole.
//
//	monotonic  the API never has an older report of a pod after a newer one, and what it has was reported before
//	final      Succeeded and Failed stay, are not published before the containers have ended, and are never Ready
//	right pod  each write names the UID of a pod of that name; deletes are for pods that were terminated, and succeed once
//	own fields the condition of another writer is never changed
//	list first no process of the agent writes before it has listed the pods
//	delivered  the API has what was reported in time after the last fault
//	truth      what Pending and Flush say is so
//	calls      no call of the manager waits forever, and no process of the agent ends by itself
//	resources  memory, goroutines and descriptors do not grow
package judge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/statusd/statusd/test/robustness/record"
)

// A Violation is what must not be in a history.
type Violation struct {
	Invariant string
	UID       string // of the pod; empty: it is about the agent
	At        int64  // when it shows
	Text      string
}

func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// Validator finds the violations of one invariant. Records are in the order of time.
type Validator struct {
	Invariant string
	// pod judges the records of one pod, together with those that are of no pod.
	pod func([]record.Record) []Violation
	// all judges the whole history.
	all func([]record.Record) []Violation
}

// Validators are all there are.
var Validators = []Validator{
	{Invariant: "monotonic", pod: monotonic},
	{Invariant: "final", pod: final},
	{Invariant: "right pod", pod: rightPod},
	{Invariant: "own fields", pod: ownFields},
	{Invariant: "list first", all: listFirst},
	{Invariant: "delivered", pod: delivered},
	{Invariant: "truth", pod: truth},
	{Invariant: "calls", all: calls},
	{Invariant: "resources", all: resources},
}

// Judge returns the violations of a history, in the order of time.
func Judge(history []record.Record) (all []Violation) {
	pods := split(history)
	for _, v := range Validators {
		found := []Violation{}
		if v.all != nil {
			found = v.all(history)
		} else {
			for _, records := range pods {
				found = append(found, v.pod(records)...)
			}
		}
		for i := range found {
			found[i].Invariant = v.Invariant
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return all
}

// split returns, by UID, the records of each pod among those that are of no pod. Requests that do not name a UID are of the pods of their name.
func split(history []record.Record) map[string][]record.Record {
	pods, names := map[string][]record.Record{}, map[string][]string{}
	for i := range history {
		r := &history[i]
		if r.UID == "" {
			continue
		}
		if _, known := pods[r.UID]; !known && r.Kind != record.Request {
			pods[r.UID] = nil
			names[r.Name] = append(names[r.Name], r.UID)
		}
	}
	everywhere := []record.Record{} // records of no pod, which each pod needs
	for i := range history {
		r := history[i]
		switch {
		case r.UID == "" && shared(&r):
			everywhere = append(everywhere, r)
		case r.Kind == record.Request && r.UID == "":
			for _, uid := range names[r.Name] {
				pods[uid] = append(pods[uid], r)
			}
		case r.UID != "":
			pods[r.UID] = append(pods[r.UID], r)
		}
	}
	for uid, records := range pods {
		records = append(records, everywhere...)
		record.Sort(records)
		pods[uid] = records
	}
	return pods
}

// shared reports whether validators of pods need the record, which is of no pod.
func shared(r *record.Record) bool {
	switch r.Kind {
	case record.Look, record.Started, record.Ended:
		return true
	case record.Fault:
		return r.Fault == record.Restored || isHook(r)
	}
	return false
}

// Of are the records that a violation is about, among those that are of no pod.
func Of(history []record.Record, v Violation) []record.Record {
	if v.UID == "" {
		return history
	}
	return split(history)[v.UID]
}

func violation(r *record.Record, format string, args ...any) Violation {
	return Violation{UID: r.UID, At: r.At, Text: fmt.Sprintf(format, args...)}
}
