package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/text"
)

const (
	// A difference that was there returnTimes within returnWindow, each time after it had vanished, is drift, however short each time
	// was. News that is late comes once.
	returnTimes  = 3
	returnWindow = 2 * time.Minute
	// calm is how long a drift that comes and goes must be away before it is over: a fight of two writers is one drift.
	calm = 30 * time.Second
)

// comesBack notes that a difference is there again after it had vanished. comesBack counts if the side that is right has not changed its mind
// meanwhile; a foreign writer must have written again.
func (a *Auditor) comesBack(e *entry, now *finding) {
	again := now.recurs != "" && now.recurs == e.Recurs
	if now.Kind == ForeignWriter {
		again = now.Since.After(e.Written)
	}
	switch {
	case !again && !e.Difference.Drift:
		e.Returns = nil
	case again:
		e.Returns = append(e.Returns, a.state.Counted)
	}
	e.Gone = false
}

// returned reports whether the difference has come back often enough to be drift.
func (a *Auditor) returned(e *entry) bool {
	e.Returns = slices.DeleteFunc(e.Returns, func(at time.Duration) bool { return a.state.Counted-at > returnWindow })
	return len(e.Returns) >= returnTimes-1
}

// lingers reports whether an entry that was not found is kept: a drift that comes and goes until it was away for a while, anything else so
// long that its return is noticed.
func (a *Auditor) lingers(e *entry) bool {
	if !e.Gone {
		e.Gone, e.GoneAt = true, a.state.Counted
	}
	away := a.state.Counted - e.GoneAt
	if e.Difference.Drift {
		return away < calm && e.fights()
	}
	return away < returnWindow && (e.Recurs != "" || e.Difference.Kind == ForeignWriter)
}

// fights reports whether a drift comes and goes.
func (e *entry) fights() bool { return e.Difference.Kind == ForeignWriter || len(e.Returns) > 0 }

// withReturns adds to a difference how often it came back.
func (e *entry) withReturns(w *world) Difference {
	d := e.Difference
	if n := len(e.Returns); n > 0 && d.Drift {
		d.Evidence = append(slices.Clone(d.Evidence), w.evidence(SideAPI, w.Now, fmt.Sprintf("the API was right in between, and wrong again %s within %s", times(int64(n)), text.Span(returnWindow))))
	}
	return d
}

// twoKubelets merges the differences in which the API has, again and again, containers that this runtime never had: the kubelet of
// another machine writes them.
func twoKubelets(w *world, list []Difference, foreign map[key]bool) []Difference {
	var rest []Difference
	d := Difference{Kind: TwoKubelets, Seen: w.Now, Since: w.Now, Drift: true, Certainty: Certain,
		Do: fmt.Sprintf("Find the other machine whose kubelet has the name %s and its credentials, such as a clone of this one, and stop its kubelet: each pod runs twice.", w.Node)}
	pods := map[Ref]bool{}
	for _, one := range list {
		if !one.Drift || !foreign[keyOf(&one)] {
			rest = append(rest, one)
			continue
		}
		pods[one.Pod] = true
		if one.Seen.Before(d.Seen) {
			d.Seen = one.Seen
		}
		if one.Since.Before(d.Since) {
			d.Since = one.Since
		}
		const enough = 6
		if len(d.Evidence) < enough {
			d.Evidence = append(d.Evidence, one.Evidence...)
		}
	}
	if len(pods) == 0 {
		return list
	}
	d.Message = fmt.Sprintf("Another kubelet reports for node %s: again and again the API has containers of %s that the runtime of this machine does not have.", w.Node, podCount(len(pods)))
	return append(rest, d)
}

func podCount(n int) string {
	if n == 1 {
		return "a pod"
	}
	return fmt.Sprintf("%d pods", n)
}
