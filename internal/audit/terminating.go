package audit

import (
	"fmt"
	"path"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// stuckAllowance is how long the end of a pod may take after its grace: the kubelet unmounts its
// volumes, removes their content and its control group, and deletes it.
const stuckAllowance = 2 * time.Minute

// stuckTerminating is a pod whose deletion was asked for longer ago than its grace. The API server
// writes the end of the grace by its own clock.
func (w *world) stuckTerminating(p *podView) []finding {
	if p.api == nil || !w.APIAnswer.Known() || p.api.Pod.DeletionTimestamp == nil || podstatus.IsMirror(p.api.Pod) {
		return nil
	}
	due := w.machineTime(p.api.Pod.DeletionTimestamp.Time)
	if w.Now.Before(due) {
		return nil
	}
	f := finding{
		Difference: Difference{Kind: StuckTerminating, Pod: p.ref, Since: due, Certainty: Certain},
		needs:      []Side{SideAPI}, fresh: []Side{SideAPI}, news: SideAPI, allow: stuckAllowance,
	}
	f.Evidence = []Evidence{w.evidence(SideAPI, p.api.At, fmt.Sprintf("deletionTimestamp %s, phase %s", w.when(p.api.Pod.DeletionTimestamp.Time), p.api.Pod.Status.Phase))}
	w.holds(p, &f.Difference)
	f.Message = fmt.Sprintf("%s/%s should have been gone since %s", p.ref.Namespace, p.ref.Name, w.when(due))
	if len(f.Holds) > 0 {
		f.Message += ": " + strings.Join(f.Holds, "; ")
	} else {
		f.Certainty = Likely
	}
	f.Message += "."
	return []finding{f}
}

// holds finds what holds the pod, the cause first, and what to do about the first.
func (w *world) holds(p *podView, d *Difference) {
	hold := func(what, do string) {
		d.Holds = append(d.Holds, what)
		if d.Do == "" {
			d.Do = do
		}
	}
	if !w.kubeletAnswers() && (w.KubeletAnswer.Err != "" || w.kubeletHalted()) {
		what, do := "the kubelet does not answer", "Look at the kubelet's log, and restart it if it hangs."
		if w.kubeletHalted() {
			what, do = w.processWords(), w.doProcess()
		}
		hold(what, do)
		d.Evidence = append(d.Evidence, w.evidence(SideKubelet, time.Time{}, w.kubeletText()))
	}
	if w.RuntimeAnswer.Known() {
		for _, c := range p.running() {
			hold(fmt.Sprintf("container %q still runs", c.Name), "Look at the kubelet's and the runtime's log for why the container cannot be stopped.")
			d.Evidence = append(d.Evidence, w.evidence(SideRuntime, c.At, fmt.Sprintf("container %q: %s", c.Name, w.runtimeText(&c))))
		}
	}
	if w.MachineAnswer.Known() && p.dir != nil {
		w.directoryHolds(p.dir, hold)
		d.Evidence = append(d.Evidence, w.evidence(SideMachine, p.dir.At, directoryText(p.dir)))
	}
	for _, name := range p.api.Pod.Finalizers {
		hold("finalizer "+name, fmt.Sprintf("Find the controller that owns the finalizer %s and why it does not remove it.", name))
	}
	if len(d.Holds) > 0 {
		return
	}
	d.Do = "Look at the kubelet's log for this pod; if none of its containers, mounts and directories are left on the node, delete the pod by force."
	if w.kubeletAnswers() && p.kubelet != nil {
		hold("the kubelet has not finished with it", d.Do)
	}
}

// directoryHolds: a pod is deleted only when its volumes are unmounted. A directory that is not empty
// holds nothing while something is mounted in it, which says more.
func (w *world) directoryHolds(dir *PodDir, hold func(what, do string)) {
	for _, m := range dir.Mounts {
		hold("volume mounted at "+m, fmt.Sprintf("Find out what uses the volume (fuser -vm %s).", m))
	}
	if len(dir.Mounts) == 0 {
		for _, v := range dir.Volumes {
			hold(fmt.Sprintf("volume directory %s is not empty", path.Base(v)), fmt.Sprintf("Look at the kubelet's log for why it cannot remove %s.", v))
		}
	}
}

// deleting reports whether the deletion of the pod was asked for.
func deleting(pod *v1.Pod) bool { return pod != nil && pod.DeletionTimestamp != nil }
