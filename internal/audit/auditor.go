package audit

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxStep is the most that one audit adds to the age of a difference: a second, or a tenth of its bound
// if the tenth is longer. So neither a step of the clock nor a pause of this process makes a difference
// old; see [Auditor.Due].
func maxStep(wait time.Duration) time.Duration { return max(time.Second, wait/10) }

// AuditorOptions configure an [Auditor].
type AuditorOptions struct {
	// State is the result of [Auditor.State] in an earlier process; nil or unreadable: none.
	State []byte
}

// Auditor compares facts over time. It keeps the start of each difference, measures how long changes
// take to arrive, and marks differences that last longer as drift. It has no clock: it uses the time
// of the facts, which may step back and forth. It is not safe for concurrent use.
type Auditor struct {
	state memory
	// dueIn is how long after the last audit the next difference may become drift; zero if none.
	dueIn time.Duration
	stale []Side
}

// entry is the record of a difference between audits.
type entry struct {
	Difference Difference `json:"difference"`
	// Age is for how long it has been seen, counted audit by audit.
	Age time.Duration `json:"age"`
	// Answered is the age at which a side last gave a new answer, Answers are these.
	Answered map[Side]time.Duration `json:"answered,omitempty"`
	Answers  map[Side]time.Time     `json:"answers,omitempty"`
	Needs    []Side                 `json:"needs,omitempty"`
	Stamp    time.Time              `json:"stamp,omitzero"`
	// Confirmed is the last time that the watch of pods was confirmed, Confirms is how often that was.
	Confirmed time.Time `json:"confirmed,omitzero"`
	Confirms  int       `json:"confirms,omitempty"`
	// Behind and Allow are copied from the finding.
	Behind string        `json:"behind,omitempty"`
	Allow  time.Duration `json:"allow,omitempty"`
	// Gone: the difference was not found at the last audit, for the first time at GoneAt. Returns are the times at which it came
	// back. Recurs and Foreign are copied from the finding, Written is the time of the last write of a foreign writer.
	Gone    bool            `json:"gone,omitempty"`
	GoneAt  time.Duration   `json:"goneAt,omitempty"`
	Returns []time.Duration `json:"returns,omitempty"`
	Recurs  string          `json:"recurs,omitempty"`
	Written time.Time       `json:"written,omitzero"`
	Foreign bool            `json:"foreign,omitempty"`
}

// key distinguishes differences.
type key struct {
	kind      Kind
	uid       types.UID
	container string
	subject   string
}

func keyOf(d *Difference) key {
	k := key{kind: d.Kind, uid: d.Pod.UID, container: d.Container, subject: d.Subject}
	if d.Writer != "" {
		k.container, k.subject = "", d.Writer // the fields may grow
		if d.Pod.UID == "" {
			k.container = d.Subject // the Node or its lease
		}
	}
	return k
}

// NewAuditor returns an Auditor that continues from the state of an earlier one.
func NewAuditor(o AuditorOptions) *Auditor {
	return &Auditor{state: restore(o.State)}
}

// Audit returns the current differences. Differences that have lasted longer than changes of their
// side usually take have Drift set.
func (a *Auditor) Audit(f Facts) Report {
	step := a.step(f.Now)
	w := newWorld(f)
	w.leaseQuiet = a.leaseQuiet(f)
	a.measure(w)
	bounds := a.propagation()
	found := map[key]bool{}
	a.dueIn, a.stale = 0, nil
	var list []Difference
	for _, now := range w.compare() {
		k := keyOf(&now.Difference)
		if found[k] {
			continue
		}
		if e := a.state.entries[k]; now.older != "" && e != nil && e.Gone && !e.Difference.Drift {
			a.stale = append(a.stale, now.older)
			continue
		}
		found[k] = true
		wait := a.threshold(&now, bounds, w)
		e := a.take(k, &now, f, min(step, maxStep(wait)))
		switch {
		case e.Difference.Drift:
		case a.returned(e):
			e.Difference.Drift = true
		case !now.onReturn:
			var stale []Side
			e.Difference.Drift, stale = e.ripe(&now, wait)
			a.stale = append(a.stale, stale...)
		}
		if e.Difference.Drift && e.Difference.Certainty == Possible && !now.onReturn {
			e.Difference.Certainty = Likely // what could have explained it has not happened
		}
		if !now.onReturn {
			a.wakeFor(e, wait)
		}
		if !now.onReturn || e.Difference.Drift {
			list = append(list, e.withReturns(w))
		}
	}
	list = append(list, a.unresolved(w, found)...)
	list = restored(w, twoKubelets(w, list, a.foreign()))
	a.wakeAt(w)
	a.state.rememberGraces(w)
	slices.SortFunc(list, order)
	return Report{At: f.Now, Node: f.Node, NodeMissing: f.APIAnswer.Known() && f.NodeObject == nil, Differences: list, Propagation: bounds, Sides: map[Side]Answer{
		SideAPI: f.APIAnswer, SideKubelet: f.KubeletAnswer, SideRuntime: f.RuntimeAnswer, SideMachine: f.MachineAnswer,
	}}
}

// step is the time since the last audit, zero if the clock was set back.
func (a *Auditor) step(now time.Time) time.Duration {
	var step time.Duration
	if !a.state.Last.IsZero() {
		step = max(now.Sub(a.state.Last), 0)
		a.state.Counted += min(step, time.Minute)
		if now.Before(a.state.Last) {
			a.state.SetBack = a.state.Counted + afterSetBack
		}
	}
	a.state.Last = now
	return step
}

// leaseQuiet is for how long the lease has been the same, on the auditor's own count of time.
func (a *Auditor) leaseQuiet(f Facts) time.Duration {
	m := &a.state
	if f.Lease == nil || f.Lease.Spec.RenewTime == nil || !f.APIAnswer.Known() {
		m.Renewed, m.RenewedAt = time.Time{}, m.Counted
	} else if t := f.Lease.Spec.RenewTime.Time; !t.Equal(m.Renewed) {
		m.Renewed, m.RenewedAt = t, m.Counted
	}
	return m.Counted - m.RenewedAt
}

// take remembers a difference that was found.
func (a *Auditor) take(k key, now *finding, f Facts, step time.Duration) *entry {
	e := a.state.entries[k]
	if e == nil {
		e = &entry{Answered: map[Side]time.Duration{}, Answers: map[Side]time.Time{}, Stamp: now.stamp}
		e.Difference.Seen = f.Now
		e.Difference.Since = now.Since
		a.state.entries[k] = e
		e.Confirmed = f.APIConfirmed
		step = 0
	}
	if e.Gone {
		a.comesBack(e, now)
		if !e.Difference.Drift {
			e.Age, e.Confirms, step = 0, 0, 0
			e.Difference.Seen, e.Difference.Since = f.Now, now.Since
			clear(e.Answered)
		}
	}
	e.Recurs, e.Written, e.Foreign = now.recurs, now.Since, now.foreign
	e.Age += step
	if !e.Difference.Drift && (e.Behind != now.behind || now.allow < e.Allow) {
		// The side makes progress, or the kubelet is not busy any more: it begins again.
		e.Age, e.Difference.Seen, e.Difference.Since = 0, f.Now, now.Since
		clear(e.Answered)
	}
	e.Behind, e.Allow = now.behind, now.allow
	for _, s := range now.fresh {
		if at := f.answer(s).At; !at.Equal(e.Answers[s]) {
			e.Answers[s], e.Answered[s] = at, e.Age
		}
	}
	if !f.APIConfirmed.Equal(e.Confirmed) {
		e.Confirmed, e.Confirms = f.APIConfirmed, e.Confirms+1
	}
	before := e.Difference
	e.Difference = now.Difference
	e.Needs = now.needs
	e.Difference.Seen, e.Difference.Drift = before.Seen, before.Drift
	if before.Since.Before(now.Since) {
		e.Difference.Since = before.Since
	}
	if e.Difference.Seen.After(f.Now) {
		e.Difference.Seen = f.Now // the clock was set back
	}
	if e.Difference.Since.After(f.Now) {
		e.Difference.Since = f.Now
	}
	return e
}

// ripe reports whether the difference has lasted long enough to be drift, and which sides must
// answer again first. A copy may be older than the change.
func (e *entry) ripe(now *finding, wait time.Duration) (bool, []Side) {
	if e.Age < wait {
		return false, nil
	}
	if !now.stamp.IsZero() && now.stamp.Equal(e.Stamp) {
		return false, []Side{SideAPI} // each answer of the server shows its clock
	}
	var stale []Side
	for _, s := range now.fresh {
		if e.Answered[s] < wait || s == SideAPI && !now.atOnce && !e.Confirmed.IsZero() && e.Confirms == 0 {
			stale = append(stale, s)
		}
	}
	return len(stale) == 0, stale
}

// stoppedWait is how long a difference lasts before it is drift if the kubelet is stopped by a signal: it
// sends no news, unless it was stopped for a moment only.
const stoppedWait = 1500 * time.Millisecond

// threshold is how long the difference may last.
func (a *Auditor) threshold(now *finding, bounds map[Side]Propagation, w *world) time.Duration {
	if now.atOnce {
		return stoppedWait
	}
	wait := now.allow
	if now.Kind == ContainerWithoutPod && !w.kubeletHalted() {
		wait = max(wait, a.state.graceOf(now.Pod.UID)+leftoverAllowance/2)
	}
	if now.news == "" {
		wait = max(wait, boundFloor)
	} else {
		// The kubelet learns from the runtime, which may itself be slow to answer.
		wait += bounds[now.news].Bound + 2*bounds[SideRuntime].P99
	}
	if w.unsettled(now) {
		wait = max(wait, startGrace)
	}
	return wait
}

// returnGrace is how long a side may be behind after it has come back: a kubelet that could not reach the
// API server first sends the changes that have piled up, and renews its lease after a pause.
const returnGrace = 45 * time.Second

// unsettled reports whether a side that the difference needs, or the kubelet that reports to it, has
// come back only now.
func (w *world) unsettled(now *finding) bool {
	for _, s := range now.needs {
		if s != SideMachine && recent(w.answer(s).Since, w.Now, returnGrace) {
			return true
		}
	}
	return w.kubeletStarting()
}

// afterSetBack is how long after the clock was set back what goes by the clock is not taken as resolved:
// so long the server's clock may not have been measured again.
const afterSetBack = 2 * time.Minute

// byClock reports whether such differences are found by comparing a time with the clock.
func (k Kind) byClock() bool { return k == StuckTerminating || k == LeaseStale }

// unresolved returns the drifts that were not found because a side does not answer: whether they
// still exist is unknown. A difference that answering sides do not show is dropped, and its age
// starts again if it was no drift yet.
func (a *Auditor) unresolved(w *world, found map[key]bool) []Difference {
	f := w.Facts
	var list []Difference
	for k, e := range a.state.entries {
		switch {
		case found[k]:
		case e.Difference.Drift && a.undecided(e, f) && !over(&e.Difference, f):
			if e.Difference.Certainty == Certain {
				e.Difference.Certainty = Likely
			}
			list = append(list, e.Difference)
		case !over(&e.Difference, f) && a.lingers(e):
			if e.Difference.Drift {
				list = append(list, e.withReturns(w))
				a.wakeIn(calm - (a.state.Counted - e.GoneAt))
			}
		default:
			delete(a.state.entries, k)
		}
	}
	return list
}

// foreign are the entries in which the API has containers that this runtime does not have, and which come and go.
func (a *Auditor) foreign() map[key]bool {
	all := map[key]bool{}
	for k, e := range a.state.entries {
		if e.Foreign && len(e.Returns) > 0 {
			all[k] = true
		}
	}
	return all
}

// undecided reports whether the facts do not say whether the difference is still there.
func (a *Auditor) undecided(e *entry, f Facts) bool {
	return slices.ContainsFunc(e.Needs, func(s Side) bool { return !f.answer(s).Known() }) || e.Difference.Kind.byClock() && a.state.Counted < a.state.SetBack
}

// over reports whether the pod that the API was wrong about is gone from the API.
func over(d *Difference, f Facts) bool {
	if d.Pod.UID == "" || d.Kind == ContainerWithoutPod || d.Kind == OrphanedPodDirectory || !f.APIAnswer.Known() {
		return false
	}
	_, there := f.APIPods[d.Pod.UID]
	return !there
}

func (a *Auditor) wakeFor(e *entry, wait time.Duration) {
	if e.Difference.Drift {
		return
	}
	a.wakeIn(min(max(wait-e.Age, 100*time.Millisecond), maxStep(wait)))
}

// wakeIn has the facts audited again after a time, if not before.
func (a *Auditor) wakeIn(in time.Duration) {
	if in = max(in, 100*time.Millisecond); a.dueIn == 0 || in < a.dueIn {
		a.dueIn = in
	}
}

// wakeAt sees to what happens when nothing happens: a lease runs out, the grace of a pod ends, a kubelet
// that has started is expected to know its pods.
func (a *Auditor) wakeAt(w *world) {
	for _, t := range w.deadlines() {
		if in := t.Sub(w.Now); in >= 0 {
			a.wakeIn(in)
		}
	}
}

// Due returns when the facts should be audited again although nothing has changed, so that a
// difference becomes drift in time; zero if no audit is due.
func (a *Auditor) Due() time.Time {
	if a.dueIn == 0 {
		return time.Time{}
	}
	return a.state.Last.Add(a.dueIn)
}

// Stale returns the sides that must be queried again: a difference has lasted long enough to be
// drift, but their answers are older. For the API, the watch of pods must be confirmed.
func (a *Auditor) Stale() []Side {
	slices.Sort(a.stale)
	return slices.Compact(a.stale)
}
