package judge

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/robustness/record"
)

// delivered checks that the API has what is wanted within the time that the want names, unless the history ends before.
func delivered(records []record.Record) (found []Violation) {
	if len(records) == 0 {
		return nil
	}
	for i := range records {
		if want := &records[i]; want.Kind == record.Want {
			after := Lag(records, i)
			if end := time.Duration(records[len(records)-1].At - want.At); after > want.Within && end > want.Within && !forgotten(records[:i], want) {
				found = append(found, violation(want, "%s: the API does not have %s %s after the last fault, want it after %s", want.Name, wanted(want), min(after, end).Round(time.Millisecond), want.Within))
			}
		}
	}
	return found
}

// Forgotten reports whether the end that is wanted cannot be delivered.
func Forgotten(records []record.Record, want int) bool {
	return forgotten(records[:want], &records[want])
}

// forgotten reports whether nobody knows the end that is wanted any more: the API had it, so that the journal gave it up; then the server was taken
// back to before it, and the process that had reported it has ended. Only a program that reports the end again can bring it back.
func forgotten(before []record.Record, want *record.Record) bool {
	restore := -1
	for i := range before {
		if isRestore(&before[i]) {
			restore = i
		}
	}
	if restore < 0 || !podstatus.IsTerminal(want.Facts.Phase) {
		return false
	}
	had, process := false, 0
	for i := range before[:restore] {
		switch r := &before[i]; {
		case r.Kind == record.Call && (r.Verb == record.Exit || r.Verb == record.Evict || r.Verb == record.Terminate):
			process = r.Agent
		case r.Kind == record.Version:
			had = had || r.Facts.Number >= want.Facts.Number && podstatus.IsTerminal(r.Facts.Phase)
		}
	}
	again := slices.ContainsFunc(before[restore:], func(r record.Record) bool {
		return r.Kind == record.Call && (r.Verb == record.Exit || r.Verb == record.Evict)
	})
	over := slices.ContainsFunc(before, func(r record.Record) bool { return r.Kind == record.Ended && r.Agent == process })
	return had && over && !again
}

func wanted(want *record.Record) string {
	if want.Absent {
		return "the end of the pod"
	}
	return (&record.Record{Facts: want.Facts}).String()[len("00:00:00.000000 "):]
}

// never is longer than any history.
const never = time.Duration(1<<63 - 1)

// Lag is how long after a want the API has what is wanted; zero if it had so before. If the agent has come to report of the pod only after the want,
// as of one that is back by a restore and that its watch has not brought before, it is how long after the report.
func Lag(records []record.Record, want int) time.Duration {
	w := &records[want]
	agrees := w.Facts.Agrees
	if evicted(records[:want]) && w.Facts != nil && !podstatus.IsTerminal(w.Facts.Phase) {
		agrees = func(api *record.Facts) bool { return w.Facts.Phase == api.Phase && (w.Facts.Ready || !api.Ready) }
	}
	fits := func(r *record.Record) bool { // a pod whose deletion was requested meanwhile is gone, too
		return r.Kind == record.Gone || !w.Absent && r.Kind == record.Version && agrees(r.Facts)
	}
	for i := want - 1; i >= 0; i-- {
		if r := &records[i]; r.Kind == record.Version || r.Kind == record.Gone {
			if fits(r) {
				return 0
			}
			break
		}
	}
	from := w.At
	for i := want + 1; i < len(records); i++ {
		r := &records[i]
		if fits(r) {
			return time.Duration(r.At - from)
		}
		if r.Kind == record.Call && !reported(records[:want], r.Agent) {
			from = r.At
		}
	}
	return never
}

// evicted reports whether an eviction was reported that may stand, and no end since: a process that was killed while it took the eviction may have
// kept it. What the campaign reads of later reports waits for the end then, and so does readiness; a loss of readiness does not.
func evicted(before []record.Record) (stands bool) {
	for i := range before {
		if r := &before[i]; r.Kind == record.Call {
			switch r.Verb {
			case record.Evict:
				stands = true
			case record.Exit, record.Terminate:
				stands = false
			}
		}
	}
	return stands
}

// reported reports whether a process of the agent has reported of the pod since the last restore.
func reported(records []record.Record, agent int) bool {
	for i := len(records) - 1; i >= 0 && !isRestore(&records[i]); i-- {
		if r := &records[i]; r.Kind == record.Call && r.Agent == agent {
			return true
		}
	}
	return false
}

// seenLate is how much later than the agent the campaign may see a version of the API.
const seenLate = 2 * time.Second

// truth checks what the manager says of a pod: whatever was reported before it was asked is in the API, or the pod is in Pending; and if Flush
// has ended without an error, it is in the API.
func truth(records []record.Record) (found []Violation) {
	calls := map[int64]*record.Record{}
	var taken []*record.Record // returns of calls that stored something, of the process that runs
	// evicting: an eviction was reported, to this process or to one before whose journal may have it, and no end since. It waits for the containers,
	// and what the campaign reads of it in the API with it.
	evicting := false
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case record.Call:
			calls[r.ID] = r
			switch r.Verb {
			case record.Evict:
				evicting = true
			case record.Exit, record.Terminate:
				evicting = false
			}
		case record.Started:
			taken = nil
		case record.Return:
			if r.Err == "" || r.Warning {
				taken = append(taken, r)
			}
		case record.Look:
			newest := newestBefore(r.Since, taken)
			if newest == nil || calls[newest.ID] == nil || evicting || calls[newest.ID].Verb == record.Evict {
				continue
			}
			number := calls[newest.ID].Facts.Number
			if has(records, number, r.At+int64(seenLate)) {
				continue
			}
			claim := "Flush has ended without an error"
			if !r.Flushed {
				claim = "it is not in Pending"
			}
			if r.Flushed || !slices.Contains(r.Pending, newest.UID) {
				found = append(found, Violation{UID: newest.UID, At: r.At, Text: fmt.Sprintf("%s: %s, and the API does not have report %d", newest.Name, claim, number)})
			}
		}
	}
	return found
}

// newestBefore is the last of the returns before a time.
func newestBefore(at int64, taken []*record.Record) (newest *record.Record) {
	for _, r := range taken {
		if r.At < at {
			newest = r
		}
	}
	return newest
}

// has reports whether the API had a report or a later one of a pod, or the pod's end, or the pod was gone, until then.
func has(records []record.Record, number int, until int64) bool {
	return slices.ContainsFunc(records, func(r record.Record) bool {
		switch {
		case r.At > until:
			return false
		case r.Kind == record.Gone:
			return true
		case r.Kind == record.Version, r.Kind == record.Request && r.Sent == http.StatusOK && r.Facts != nil:
			return r.Facts.Number >= number || podstatus.IsTerminal(r.Facts.Phase)
		}
		return false
	})
}
