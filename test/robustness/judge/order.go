package judge

import (
	"net/http"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/robustness/record"
)

func isRestore(r *record.Record) bool { return r.Kind == record.Fault && r.Fault == record.Restored }

// operation is what the register of a pod is asked: to take the number of a report, or which it has.
type operation struct {
	read   bool
	number int
}

// register is a number that only grows: a write of a smaller one changes nothing, because the manager sends the newest.
var register = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		has, op := state.(int), input.(operation)
		if op.read {
			return op.number == has, has
		}
		return true, max(has, op.number)
	},
}

// monotonic checks that the API's pod is linearizable: that there is an order of reports and of versions of the API that keeps to their
// times, in which each version has the newest report before it. Each restore of the server begins another history.
func monotonic(records []record.Record) (found []Violation) {
	var history segment
	for i := range records {
		r := &records[i]
		switch {
		case isRestore(r):
			found = append(found, history.check()...)
			history = history.afterRestore()
		case r.Kind == record.Call && r.Facts != nil:
			history.reports = append(history.reports, report{r.At, r.Facts.Number})
		case r.Kind == record.Version:
			history.versions = append(history.versions, r)
		}
	}
	return append(found, history.check()...)
}

type report struct {
	at     int64
	number int
}

// segment is the history of a pod between two restores.
type segment struct {
	reports  []report
	versions []*record.Record
}

// afterRestore has what was reported before: the manager may send any of it again.
func (s segment) afterRestore() segment {
	for i := range s.reports {
		s.reports[i].at = 0
	}
	return segment{reports: s.reports}
}

// check looks for the first version that no order explains.
func (s segment) check() []Violation {
	if s.linearizable(len(s.versions)) {
		return nil
	}
	good, bad := 0, len(s.versions)
	for bad-good > 1 {
		if middle := (good + bad) / 2; s.linearizable(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	has, before := s.versions[bad-1], 0
	if bad > 1 {
		before = s.versions[bad-2].Facts.Number
	}
	return []Violation{violation(has, "%s has report %d in version %d of the API, after report %d; no order of the reports explains that", has.Name, has.Facts.Number, has.RV, before)}
}

// linearizable asks porcupine about the first n versions. A report begins with its call, or, if it was made before a restore, right before the
// first version that has it; it ends when the API has it or a later one. Reports that no version has are left out, and so are repetitions of a
// report: they change nothing that could be read, and the search is exponential in what overlaps.
func (s segment) linearizable(n int) bool {
	operations := make([]porcupine.Operation, 0, 2*n)
	first := map[int]int64{} // when the API first had a number
	for _, v := range s.versions[:n] {
		if _, known := first[v.Facts.Number]; !known {
			first[v.Facts.Number] = v.At
		}
		operations = append(operations, porcupine.Operation{Input: operation{true, v.Facts.Number}, Call: v.At, Return: v.At})
	}
	for _, r := range s.reports {
		seen, read := first[r.number]
		if !read || r.at > seen {
			continue
		}
		delete(first, r.number)
		begins, ends := r.at, seen
		if r.at == 0 {
			begins = seen - 1
		}
		for _, v := range s.versions[:n] {
			if v.At >= begins && v.Facts.Number >= r.number {
				ends = v.At
				break
			}
		}
		operations = append(operations, porcupine.Operation{Input: operation{false, r.number}, Call: begins, Return: ends})
	}
	return porcupine.CheckOperations(register, operations)
}

// readiness checks that a pod is ready in the API only as was reported: there is an order of reports and versions that keeps to their times, in
// which each version that is ready has a report of its number or a later one that is ready, and each version that a write of the agent has made
// unready has one that is not, and no version has an earlier report than a version before it. Others make pods unready, too.
func readiness(records []record.Record) (found []Violation) {
	var reports []*record.Record
	from, ready := 0, false // the first report that the API may have, and what the version before said
	wrote := writes(records)
	for i := range records {
		r := &records[i]
		switch {
		case isRestore(r):
			from, ready, wrote = 0, false, writes(records[i+1:])
		case r.Kind == record.Call && r.Facts != nil:
			reports = append(reports, r)
		case r.Kind == record.Version && !podstatus.IsTerminal(r.Facts.Phase):
			reported := r.Facts.Ready || ready && wrote[r.RV]
			next := slices.IndexFunc(reports[from:], func(c *record.Record) bool {
				return (c.Facts.Number >= r.Facts.Number || c.Facts.Number == record.Any) && (!reported || c.Facts.Ready == r.Facts.Ready)
			})
			switch {
			case next >= 0:
				from += next
			case reported:
				found = append(found, violation(r, "%s has Ready %t in version %d of the API with report %d; no order of the reports explains that", r.Name, r.Facts.Ready, r.RV, r.Facts.Number))
			}
			ready = r.Facts.Ready
		}
	}
	return found
}

// writes are the versions, up to the next restore, that writes of the agent have made.
func writes(records []record.Record) map[uint64]bool {
	made := map[uint64]bool{}
	for i := range records {
		r := &records[i]
		if isRestore(r) {
			break
		}
		if r.Kind == record.Request && r.Verb == http.MethodPatch && r.RV > 0 {
			made[r.RV] = true
		}
	}
	return made
}

// final checks what is said of pods that have ended.
func final(records []record.Record) (found []Violation) {
	var ended *record.Record // the version that has ended
	mayEnd := false          // the end of the containers was reported
	exits := map[int]int32{} // codes, by the number of the report
	large := ""              // excuses lists that are left out
	for i := range records {
		r := &records[i]
		switch {
		case isRestore(r):
			ended = nil
		case r.Kind == record.Call && (r.Verb == record.Exit || r.Verb == record.Terminate):
			mayEnd = true
			if r.Verb == record.Exit {
				exits[r.Facts.Number] = r.Facts.Exit
			}
		case r.Kind == record.Request && r.Sent == http.StatusRequestEntityTooLarge:
			large = isTooLarge
		case r.Kind != record.Version:
		case ended != nil && r.Facts.Phase != ended.Facts.Phase:
			found = append(found, violation(r, "%s went from %s to %s", r.Name, ended.Facts.Phase, r.Facts.Phase))
		case podstatus.IsTerminal(r.Facts.Phase):
			if !mayEnd {
				found = append(found, violation(r, "%s is %s while its container may run", r.Name, r.Facts.Phase))
			}
			if r.Facts.Ready {
				found = append(found, violation(r, "%s is %s and Ready", r.Name, r.Facts.Phase))
			}
			if r.Facts.Running > 0 {
				found = append(found, violation(r, "%s is %s and has a running container", r.Name, r.Facts.Phase))
			}
			if code, exited := exits[r.Facts.Number]; exited && code != r.Facts.Exit {
				v := violation(r, "%s has ended with %d in the API, and with %d on the node", r.Name, r.Facts.Exit, code)
				v.Excuse = large
				found = append(found, v)
			}
			ended = r
		}
	}
	return found
}
