package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// frozenAllowance is how long a control group may be frozen or its processes stopped, as while a checkpoint of a container is made.
const frozenAllowance = 20 * time.Second

// frozen is a pod that the API calls Running and whose processes do not run: its control group is frozen, as by a runtime that pauses a container,
// or all processes of a container are stopped by a signal.
func (w *world) frozen(p *podView) []finding {
	if !w.APIAnswer.Known() || !w.MachineAnswer.Known() || p.api == nil || p.cgroup == nil || p.api.Pod.Status.Phase != v1.PodRunning {
		return nil
	}
	d := Difference{Kind: FrozenContainer, Pod: p.ref, Since: p.cgroup.At, Certainty: Certain}
	needs := []Side{SideAPI, SideMachine}
	var text string
	stopped := p.stoppedContainer()
	switch {
	case p.cgroup.Frozen:
		d.Message = fmt.Sprintf("The API says that %s/%s is Running, but its control group is frozen: nothing in it runs.", p.ref.Namespace, p.ref.Name)
		text = fmt.Sprintf("control group %s with %d processes is frozen", p.cgroup.Path, p.cgroup.Processes)
		d.Do = "Find out what has paused the container (ctr task pause, a checkpoint, a debugger), and resume it, or delete the pod."
	case w.RuntimeAnswer.Known() && stopped != "":
		d.Container = stopped
		d.Message = fmt.Sprintf("The API says that container %q of %s/%s is running, but all of its processes are stopped by a signal.", stopped, p.ref.Namespace, p.ref.Name)
		text = fmt.Sprintf("control group %s: all processes of %s are stopped", p.cgroup.Path, strings.Join(p.cgroup.Stopped, ", "))
		d.Do = "Find out what has stopped the processes (kill -STOP, a debugger), and continue them (kill -CONT), or delete the pod."
		needs = append(needs, SideRuntime)
	default:
		return nil
	}
	d.Evidence = []Evidence{
		w.evidence(SideAPI, p.api.At, "phase "+string(p.api.Pod.Status.Phase)),
		w.evidence(SideMachine, p.cgroup.At, text),
	}
	return []finding{{Difference: d, needs: needs, fresh: []Side{SideAPI, SideMachine}, allow: frozenAllowance}}
}

// stoppedContainer returns the name of a running container whose processes are all stopped, or "". A stopped process of a sandbox does no harm.
func (p *podView) stoppedContainer() string {
	for _, c := range p.running() {
		if slices.ContainsFunc(p.cgroup.Stopped, func(group string) bool { return c.ID != "" && strings.Contains(group, c.ID) }) {
			return c.Name
		}
	}
	return ""
}
