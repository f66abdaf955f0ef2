package oracle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// expectation is what statusd must say of a pod whatever the kubelet says: the phase of the
// newest report that was stored, until the pod ends, and in the API the readiness that is in the
// cache. Without it a correction could hide a pod that is never heard of again.
type expectation struct {
	// reported is the phase of the newest report that statusd stored, "" if it is not known
	// what statusd must say.
	reported v1.PodPhase
	// over: the pod has ended, or may have, so that a report need not count (X7).
	over bool
	// revised is the end that the end of the containers has revised, "" if none was. The API keeps it if it has it.
	revised v1.PodPhase
	// again: the next report begins another life of the pod.
	again bool
}

// stored notes a report that statusd took over another status.
func (e *expectation) stored(before, report *v1.PodStatus) {
	phase := report.Phase
	if e.again {
		*e = expectation{}
	}
	if e.reported != "" && podstatus.IsTerminal(before.Phase) && before.Phase != phase && !podrules.LeavesEnd(before, report) {
		e.revised, e.reported = e.reported, phase
	}
	if e.over {
		return
	}
	e.reported = phase
	e.over = podstatus.IsTerminal(phase)
}

// end notes that the pod has ended by other means than a report, after which it may begin
// another life, or not.
func (e *expectation) end(again bool) { *e = expectation{over: true, again: again} }

// forget notes that the status was removed. A static pod may begin another life; a pod of
// the API goes on from what the API says.
func (e *expectation) forget(static bool) { *e = expectation{over: e.over && !static} }

// lie returns what statusd says although it must not, "" if it does not.
func (r *run) lie(p *nodePod) string {
	d := r.view(p, theStatusd)
	if p.expected.reported == "" || d.Cached == nil {
		return ""
	}
	if d.Cached.Phase != p.expected.reported {
		return fmt.Sprintf("pod %s (uid %s): statusd says %s, the newest report said %s, and nothing has ended the pod before",
			p.name, p.uid(), d.Cached.Phase, p.expected.reported)
	}
	mirrored := !p.static || d.API != nil && d.API.UID == p.mirrorUID() && !p.forgotten
	withheld := p.mayRun && podstatus.IsTerminal(d.Cached.Phase)
	if d.API != nil && mirrored && !withheld && d.API.Status.Phase != d.Cached.Phase && d.API.Status.Phase != p.expected.revised {
		return fmt.Sprintf("pod %s (uid %s): statusd says %s, and its API %s", p.name, p.uid(), d.Cached.Phase, d.API.Status.Phase)
	}
	if d.API != nil && mirrored {
		for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
			cached, sent := newestStatus(d.Cached.Conditions, t), newestStatus(d.API.Status.Conditions, t)
			ended := podstatus.IsTerminal(d.API.Status.Phase) && sent == v1.ConditionFalse // X6
			if cached != sent && !ended {
				return fmt.Sprintf("pod %s (uid %s): statusd says that %s is %q, and its API %q", p.name, p.uid(), t, cached, sent)
			}
		}
	}
	return ""
}

// newestStatus is the status of the last condition of a type (E7), or "".
func newestStatus(list []v1.PodCondition, t v1.PodConditionType) (status v1.ConditionStatus) {
	for i := range list {
		if list[i].Type == t {
			status = list[i].Status
		}
	}
	return status
}
