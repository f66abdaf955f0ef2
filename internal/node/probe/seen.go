package probe

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// maxAnswer is how much of an answer is kept: enough for a person.
const maxAnswer = 256

// Result is the result of the probes of one kind in the current run of a container.
type Result struct {
	Container string
	Kind      runtime.ProbeKind
	// A probe that could not be carried out has an answer and does not count.
	podstatus.Probe
	// Decided: there were enough equal results for a verdict, which is Passed.
	Decided, Passed bool
}

// seen is the part of a result that changes. The lock of the prober guards it.
type seen struct {
	streak
	since     time.Time
	answer    string
	at        time.Time
	notBefore time.Time
	verdict   result
	// told is the verdict that was reported to the observer, or by an earlier process.
	told result
}

// Results returns the results of a pod's probes, by container in the order of the spec, and startup
// before readiness before liveness. It is empty for a pod that is not probed.
func (p *Prober) Results(uid types.UID) []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.pods[uid]
	if known == nil {
		return nil
	}
	var list []Result
	for i := range known.manifest.Spec.InitContainers {
		list = known.runs[known.manifest.Spec.InitContainers[i].Name].appendResults(list)
	}
	for i := range known.manifest.Spec.Containers {
		list = known.runs[known.manifest.Spec.Containers[i].Name].appendResults(list)
	}
	return list
}

// appendResults appends what the probes of a run have found. A run that is not there has none.
func (r *run) appendResults(list []Result) []Result {
	if r == nil {
		return list
	}
	for _, t := range r.tasks {
		list = append(list, t.result())
	}
	return list
}

func (t *task) result() Result {
	s := &t.seen
	r := Result{
		Container: t.run.container.Name, Kind: t.kind, Probe: podstatus.Probe{Since: s.since, Answer: s.answer, At: s.at},
		Decided: s.verdict != unknown, Passed: s.verdict == success,
	}
	switch s.of {
	case success:
		r.Successes = s.length
	case failure:
		r.Failures = s.length
	default:
		r.NotBefore = s.notBefore
	}
	return r
}

// scheduled notes when the first probe of a task is due.
func (p *Prober) scheduled(t *task, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.seen.notBefore = at
}

// noteAnswer notes the answer of a probe, and passes on a verdict that has changed.
func (p *Prober) noteAnswer(t *task, so streak, decided result, found answer, now time.Time) {
	p.mu.Lock()
	s := &t.seen
	if so.of != s.of {
		s.since = now
	}
	s.streak, s.answer, s.at = so, short(found.message), now
	changed := decided != unknown && decided != s.told && !t.ended
	if decided != unknown {
		s.verdict, s.told = decided, decided
	}
	verdict := Verdict{
		Pod: t.pod.manifest, Container: t.run.container.Name, Kind: t.kind,
		Passed: decided == success, Probes: so.length, Message: s.answer, At: now,
	}
	p.mu.Unlock()
	if changed {
		p.opts.Observer.ProbeVerdict(verdict)
	}
}

func short(answer string) string { return text.Cut(answer, maxAnswer) }
