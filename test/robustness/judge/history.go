// Package judge looks for violations of statusd's invariants in a history. Validators are pure functions of the records; a history that is
// cut at any record has no more violations than the whole.
//
//	monotonic  the API never has an older report of a pod after a newer one, and what it has was reported before
//	readiness  a pod is ready in the API only as was reported, and never again as before
//	final      Succeeded and Failed stay, are not published before the containers have ended, are never Ready, and have the exit code
//	right pod  each write names the UID of a pod of that name; deletes are for pods that were terminated and are to go, and succeed once
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
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/test/robustness/record"
)

// A Violation is what must not be in a history.
type Violation struct {
	Invariant string
	UID       string // of the pod; empty: it is about the agent
	At        int64  // when it shows
	Text      string
	// Excuse is what is not promised, and excuses it; empty: nothing does.
	Excuse string
}

// Excuses: what is not promised. docs/evidence/reliability.md has each.
const (
	watchIsLate  = "the agent's watch had not brought the pod"
	afterRestore = "within a minute after a restore of the server"
	isTooLarge   = "the server has called the status too large"
	evicted      = "an eviction stands, whose containers have not ended"
	lostAnswer   = "the answer to the first was on its way"
	lastWrite    = "the write that deletes the pod"
	noEnd        = "the campaign could not end a fault"
)

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
	{Invariant: "readiness", pod: readiness},
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
func Judge(history []record.Record) (violations []Violation) {
	violations, _ = Verdict(history)
	return violations
}

// Verdict returns the violations of a history, in the order of time, and those that something excuses.
func Verdict(history []record.Record) (violations, excused []Violation) {
	for _, v := range find(history) {
		if (v.Invariant == "delivered" || v.Invariant == "resources") && endless(history, v.At) {
			v.Excuse = noEnd
		}
		if v.Excuse != "" {
			excused = append(excused, v)
		} else {
			violations = append(violations, v)
		}
	}
	return violations, excused
}

// endless reports whether a fault goes on at a time that the campaign could not end, until it has started the network again.
func endless(history []record.Record, at int64) (goesOn bool) {
	for i := range history {
		r := &history[i]
		switch {
		case r.At > at:
			return goesOn
		case r.Kind == record.Fault && r.Fault == record.NetworkRestarted:
			goesOn = false
		case r.Kind == record.Fault && r.Verb == record.End && strings.Contains(r.Err, "/proxies"): // of toxiproxy
			goesOn = true
		}
	}
	return goesOn
}

// find returns all that is found, excused or not.
func find(history []record.Record) (all []Violation) {
	add := func(invariant string, found []Violation) {
		for _, v := range found {
			v.Invariant = invariant
			all = append(all, v)
		}
	}
	for _, v := range Validators {
		if v.all != nil {
			add(v.Invariant, v.all(history))
		}
	}
	for _, records := range Pods(history) {
		for _, v := range Validators {
			if v.pod != nil {
				add(v.Invariant, v.pod(records))
			}
		}
	}
	slices.SortFunc(all, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return all
}

// around is how long before and after its own records a pod needs those that are of no pod: longer than any bound.
const around = 2 * time.Minute

// Pods returns, by UID, the records of each pod among those that are of no pod. Requests that do not name a UID are of the pods of their name.
//
// One pod is put together at a time: a history of hours has many thousands of pods.
func Pods(history []record.Record) iter.Seq2[string, []record.Record] {
	own, everywhere := split(history)
	return func(yield func(string, []record.Record) bool) {
		for _, uid := range slices.Sorted(maps.Keys(own)) {
			if !yield(uid, assemble(history, own[uid], everywhere)) {
				return
			}
		}
	}
}

// split returns the indexes of the records of each pod, by UID, and of those of no pod that each pod needs.
func split(history []record.Record) (own map[string][]int, everywhere []int) {
	own, names := map[string][]int{}, map[string][]string{}
	for i := range history {
		r := &history[i]
		if r.UID == "" {
			continue
		}
		if _, known := own[r.UID]; !known && r.Kind != record.Request {
			own[r.UID] = nil
			names[r.Name] = append(names[r.Name], r.UID)
		}
	}
	for i := range history {
		r := &history[i]
		switch {
		case r.UID == "" && shared(r):
			everywhere = append(everywhere, i)
		case r.Kind == record.Request && r.UID == "":
			for _, uid := range names[r.Name] {
				own[uid] = append(own[uid], i)
			}
		case r.UID != "":
			own[r.UID] = append(own[r.UID], i)
		}
	}
	return own, everywhere
}

// assemble returns the records of a pod, those around them that are of no pod, and the end of the history.
func assemble(history []record.Record, own, everywhere []int) []record.Record {
	if len(own) == 0 {
		return nil
	}
	from := history[own[0]].At - int64(around)
	until := history[own[len(own)-1]].At + int64(around)
	begin, _ := slices.BinarySearchFunc(everywhere, from, func(i int, at int64) int { return cmp.Compare(history[i].At, at) })
	end, _ := slices.BinarySearchFunc(everywhere, until, func(i int, at int64) int { return cmp.Compare(history[i].At, at) })
	all := slices.Concat(own, everywhere[begin:end])
	slices.Sort(all)
	records := make([]record.Record, 0, len(all)+1)
	for _, i := range all {
		records = append(records, history[i])
	}
	return append(records, record.Record{Kind: record.Mark, At: history[len(history)-1].At})
}

// shared reports whether validators of pods need the record, which is of no pod.
func shared(r *record.Record) bool {
	switch r.Kind {
	case record.Look, record.Started, record.Ended:
		return true
	case record.Fault:
		return r.Fault == record.Restored
	}
	return false
}

// Of are the records that a violation is about, among those that are of no pod.
func Of(history []record.Record, v Violation) []record.Record {
	if v.UID == "" {
		return history
	}
	own, everywhere := split(history)
	return assemble(history, own[v.UID], everywhere)
}

func violation(r *record.Record, format string, args ...any) Violation {
	return Violation{UID: r.UID, At: r.At, Text: fmt.Sprintf(format, args...)}
}
