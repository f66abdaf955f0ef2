package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/robustness/record"
)

// seenWithin is how long after the last fault the agent's watch may bring a pod of which nothing was reported before: the reflector of client-go waits for
// up to 30 s between two tries, and for a minute after a restore.
const seenWithin = 2 * time.Minute

// delivered checks that the API has what is wanted within the time that the want names, unless the history ends before.
func delivered(records []record.Record) (found []Violation) {
	if len(records) == 0 {
		return nil
	}
	for i := range records {
		want := &records[i]
		if want.Kind != record.Want {
			continue
		}
		l := LookAt(records, i)
		ended := time.Duration(records[len(records)-1].At - want.At)
		switch {
		case l.Unseen > seenWithin:
			found = append(found, violation(want, "%s: nothing was reported before %s after the last fault, want it after %s", want.Name, l.Unseen.Round(time.Millisecond), seenWithin))
		case max(l.Lag, l.Lag+l.Unseen) > want.Within && ended > want.Within:
			v := violation(want, "%s: the API does not have %s %s after the last fault, want it after %s", want.Name, wanted(want), min(l.Lag, ended).Round(time.Millisecond), want.Within)
			if l.Lag <= want.Within {
				v.Excuse = watchIsLate
			}
			found = append(found, v)
		}
	}
	return found
}

func wanted(want *record.Record) string {
	if want.Absent {
		return "the end of the pod"
	}
	return (&record.Record{Facts: want.Facts}).String()[len("00:00:00.000000 "):]
}

// never is longer than any history.
const never = time.Duration(1<<63 - 1)

// A Look is what came of a want.
type Look struct {
	// Lag is how long after the want, or after Unseen, the API has what is wanted; zero if it had so before.
	Lag time.Duration
	// Unseen is how long after the want the agent has come to report of the pod for the first time: its watch has brought it then, as a pod that is back
	// by a restore.
	Unseen time.Duration
}

// LookAt returns what has come of a want.
func LookAt(records []record.Record, want int) (l Look) {
	w := &records[want]
	fits := func(r *record.Record) bool { // a pod whose deletion was requested meanwhile is gone, too
		return r.Kind == record.Gone || !w.Absent && r.Kind == record.Version && w.Facts.Agrees(r.Facts)
	}
	for i := want - 1; i >= 0; i-- {
		if r := &records[i]; r.Kind == record.Version || r.Kind == record.Gone {
			if fits(r) {
				return l
			}
			break
		}
	}
	for i := want + 1; i < len(records); i++ {
		r := &records[i]
		if fits(r) {
			l.Lag = time.Duration(r.At-w.At) - l.Unseen
			return l
		}
		if r.Kind == record.Call && l.Unseen == 0 && !reported(records[:want], r.Agent) {
			l.Unseen = time.Duration(r.At - w.At)
		}
	}
	l.Lag = never
	return l
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

const (
	// seenLate is how much later than the agent the campaign may see a version of the API.
	seenLate = 2 * time.Second
	// hadBefore is how long before a report the API may have had what was reported, until another writer has changed that, which the agent's watch has
	// yet to bring; and how long after a restore the agent may take what the API had before for delivered.
	hadBefore = time.Minute
)

// truth checks what the manager says of a pod: whatever was reported before it was asked is in the API, or the pod is in Pending; and if Flush
// has ended without an error, it is in the API.
func truth(records []record.Record) (found []Violation) {
	calls := map[int64]*record.Record{}
	var taken []*record.Record // returns of calls that stored something, of the process that runs
	var evicting eviction
	restore := 0 // index of the last one after which the API was seen again
	restored := -1
	for i := range records {
		r := &records[i]
		evicting.add(r)
		switch r.Kind {
		case record.Fault:
			if isRestore(r) {
				restored = i
			}
		case record.Version:
			if restored >= 0 {
				restore, restored = restored, -1
			}
		case record.Call:
			calls[r.ID] = r
		case record.Started:
			taken = nil
		case record.Return:
			if r.Err == "" || r.Warning {
				taken = append(taken, r)
			}
		case record.Look:
			newest := newestBefore(r.Since, taken)
			if newest == nil || calls[newest.ID] == nil || !r.Flushed && slices.Contains(r.Pending, newest.UID) {
				continue
			}
			claims := slices.DeleteFunc(slices.Collect(maps.Values(calls)), func(c *record.Record) bool { return c.At < calls[newest.ID].At })
			from, until := calls[newest.ID].At-int64(hadBefore), r.At+int64(seenLate)
			if has(records[restore:], claims, from, until) {
				continue
			}
			claim := "Flush has ended without an error"
			if !r.Flushed {
				claim = "it is not in Pending"
			}
			v := Violation{UID: newest.UID, At: r.At, Text: fmt.Sprintf("%s: %s, and the API does not have %+v", newest.Name, claim, *calls[newest.ID].Facts)}
			if evicting.stands || calls[newest.ID].Verb == record.Evict {
				v.Excuse = evicted
			} else if time.Duration(r.Since-records[restore].At) <= hadBefore && has(records, claims, from, until) {
				v.Excuse = afterRestore
			}
			found = append(found, v)
		}
	}
	return found
}

// eviction is whether one was reported that may stand, and no end since: it waits for the containers, and what the campaign reads of later reports in the
// API waits with it. One that a process has taken and not acknowledged before it was killed may be in the journal: the answer to the next report says so.
type eviction struct {
	stands bool
	after  map[int64]bool // calls after it that are on
}

func (e *eviction) add(r *record.Record) {
	switch {
	case r.Kind == record.Call && r.Verb == record.Evict:
		e.stands, e.after = true, map[int64]bool{}
	case r.Kind == record.Call && (r.Verb == record.Exit || r.Verb == record.Terminate):
		e.stands = false
	case r.Kind == record.Call && e.stands:
		e.after[r.ID] = true
	case r.Kind == record.Return && e.after[r.ID] && r.Err == "":
		e.stands = false
	}
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

// has reports whether the API had one of the reports or a later one at some moment of a time, or the pod was gone by then.
func has(records []record.Record, reports []*record.Record, from, until int64) bool {
	had := func(api *record.Facts) bool {
		return slices.ContainsFunc(reports, func(report *record.Record) bool {
			switch want := report.Facts; {
			case podstatus.IsTerminal(api.Phase):
				return true
			case report.Verb == record.Exit, report.Verb == record.Terminate:
				return false
			default:
				return api.Number > want.Number || api.Number == want.Number && api.Ready == want.Ready
			}
		})
	}
	var before *record.Facts // what the API had when the time began
	for i := range records {
		r := &records[i]
		switch {
		case r.At > until:
			return before != nil && had(before)
		case r.Kind == record.Gone:
			return true
		case r.Kind == record.Version && r.At <= from:
			before = r.Facts
		case r.Kind == record.Version, r.Kind == record.Request && r.At > from && r.Sent == http.StatusOK && r.Facts != nil:
			if had(r.Facts) {
				return true
			}
		}
	}
	return before != nil && had(before)
}
