package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// comparison compares the reported state of one container with the runtime's.
type comparison struct {
	w      *world
	p      *podView
	by     Side
	name   string
	status *v1.ContainerStatus // nil if none was reported
	// missing: reported as running, and the runtime does not have it.
	missing bool
	// foreign: the runtime does not have the container that was reported, and runs another one in its place.
	foreign bool
}

// containerNames are the init and regular containers of the spec. Ephemeral containers are left
// out: the kubelet neither restarts them nor ends a pod by them.
func containerNames(pod *v1.Pod) []string {
	var names []string
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	return append(names, regularNames(pod)...)
}

func regularNames(pod *v1.Pod) []string {
	var names []string
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	return names
}

// compare returns the difference of the container, or nil.
func (c *comparison) compare() *finding {
	newest := c.p.newest(c.name)
	if newest == nil {
		// The runtime may have removed an ended container, but not a running one.
		c.missing = c.status != nil && c.status.State.Running != nil
		return nil
	}
	if c.restartUnreported(newest) {
		return c.unreportedRestart(newest)
	}
	switch {
	case c.status == nil || c.status.State.Waiting != nil:
		return c.waiting(newest)
	case c.status.State.Running != nil:
		return c.running(newest)
	case c.status.State.Terminated != nil:
		return c.terminated(newest)
	}
	return nil
}

// restartUnreported reports whether the runtime has started the container again since the report. A
// reported count above the runtime's is right: old attempts are removed.
func (c *comparison) restartUnreported(newest *Container) bool {
	started := newest.State == ContainerRunning || newest.State == ContainerExited && !newest.Started.IsZero()
	if c.status == nil || !started {
		return false
	}
	return int64(newest.Attempt) > int64(c.status.RestartCount) && newest.ID != bareID(c.status.ContainerID)
}

func (c *comparison) waiting(newest *Container) *finding {
	switch newest.State {
	case ContainerRunning:
		return c.behind(newest.Started, fmt.Sprintf("has been running since %s", c.w.when(newest.Started)), newest)
	case ContainerExited:
		// It may wait for its next start: then this end is known, or its sandbox is gone.
		if !notYetStarted(c.status) || c.knowsEnd(newest.ID) || !c.p.sandboxReady(newest.SandboxID) || newest.Started.IsZero() {
			return nil
		}
		return c.behind(newest.Finished, "has already "+c.w.ended(newest), newest)
	}
	return nil
}

// notYetStarted reports whether the status says that the container was never started.
func notYetStarted(s *v1.ContainerStatus) bool {
	if s == nil {
		return true
	}
	w := s.State.Waiting
	return s.RestartCount == 0 && s.LastTerminationState.Terminated == nil && w != nil &&
		(w.Reason == podstatus.ReasonContainerCreating || w.Reason == podstatus.ReasonPodInitializing)
}

func (c *comparison) knowsEnd(id string) bool {
	if c.status == nil {
		return false
	}
	last := c.status.LastTerminationState.Terminated
	return bareID(c.status.ContainerID) == id || last != nil && bareID(last.ContainerID) == id
}

func (c *comparison) running(newest *Container) *finding {
	id := bareID(c.status.ContainerID)
	named := c.p.byID(c.name, id)
	if id == "" {
		named = newest // a report that names none is about the newest
	}
	switch {
	case named == nil && newest.State == ContainerRunning:
		c.foreign = true
		return c.behind(newest.Started, fmt.Sprintf("runs as another one, %s, since %s, and does not have %s", short(newest.ID), c.w.when(newest.Started), short(id)), newest)
	case named == nil:
		c.missing = true
		return nil
	case named.State == ContainerExited:
		return c.behind(named.Finished, c.w.ended(named), named)
	}
	return nil
}

func (c *comparison) terminated(newest *Container) *finding {
	if c.status.State.Terminated.ExitCode != unseenExit && wrongExit(c.p, c.status) {
		ended := c.p.byID(c.name, bareID(c.status.ContainerID))
		return c.behind(ended.Finished, c.w.ended(ended), ended)
	}
	if newest.State != ContainerRunning {
		return nil
	}
	// If the reported end is older than the newest attempt, a restart is in transit.
	return c.behind(newest.Started, fmt.Sprintf("has been running since %s", c.w.when(newest.Started)), newest)
}

// unseenExit is the exit code that the kubelet reports if it has missed the end of a container.
const unseenExit = 137

// behind is the finding for a container whose state at the runtime differs from the reported state.
func (c *comparison) behind(since time.Time, is string, rt *Container) *finding {
	found := c.finding(KubeletBehindRuntime, since)
	found.Message = fmt.Sprintf("%s that container %q of %s is %s, but the runtime says that it %s.", c.says(), c.name, c.podName(), stateWords(c.status), is)
	found.Evidence = []Evidence{c.reportedEvidence(), c.runtimeEvidence(rt)}
	found.Do = c.doKubelet()
	found.foreign = c.foreign && c.by == SideAPI
	if rt.State == ContainerExited {
		found.fresh = []Side{c.by} // an exit stays one, however old the answer is
	}
	return found
}

func (c *comparison) unreportedRestart(newest *Container) *finding {
	found := c.finding(UnreportedRestart, newest.Started)
	reported := "been restarted " + times(int64(c.status.RestartCount))
	if c.status.RestartCount == 0 {
		reported = "never been restarted"
	}
	found.Message = fmt.Sprintf("%s that container %q of %s has %s, but the runtime has restarted it %s, last at %s.",
		c.says(), c.name, c.podName(), reported, times(int64(newest.Attempt)), c.w.when(newest.Started))
	found.Evidence = []Evidence{c.reportedEvidence(), c.runtimeEvidence(newest)}
	found.Do = c.doKubelet()
	return found
}

// finding is one of this container, with how long the kubelet may take for it.
func (c *comparison) finding(k Kind, since time.Time) *finding {
	f := &finding{
		Difference: Difference{Kind: k, Pod: c.p.ref, Container: c.name, Since: since, Certainty: Certain},
		needs:      []Side{c.by, SideRuntime},
		fresh:      []Side{c.by, SideRuntime},
		news:       c.by,
		atOnce:     c.w.kubeletStopped(),
	}
	f.Repair = c.w.repairable(c.p, c.by)
	f.behind = c.w.statusText(c.status)
	if newest := c.p.newest(c.name); newest != nil {
		if c.by == SideAPI && c.p.api.At.After(c.w.RuntimeAnswer.At) {
			f.older = SideRuntime
		}
		f.recurs = fmt.Sprintf("%s %s %d %d", newest.ID, newest.State, newest.Started.UnixNano(), newest.Finished.UnixNano())
	}
	if !c.w.kubeletHalted() {
		f.allow = c.w.busy(c.p, c.name)
		if f.allow > 0 {
			f.Certainty = Possible
		}
	}
	return f
}

// repairable reports whether the status in the API may be written for a kubelet that is dead. The
// mirror of a static pod is the kubelet's alone.
func (w *world) repairable(p *podView, by Side) bool {
	return by == SideAPI && !w.kubeletAnswers() && !podstatus.IsMirror(p.api.Pod)
}

func (c *comparison) podName() string { return c.p.ref.Namespace + "/" + c.p.ref.Name }

func (c *comparison) says() string {
	if c.by == SideKubelet {
		return "The kubelet says"
	}
	return "The API says"
}

func (c *comparison) doKubelet() string {
	switch {
	case c.w.kubeletHalted():
		words := c.w.processWords()
		return strings.ToUpper(words[:1]) + words[1:] + ". " + c.w.doProcess()
	case !c.w.kubeletAnswers():
		return "The kubelet does not answer. Look at its log, and restart it if it hangs."
	}
	const again = "a restart of the kubelet makes it look at the runtime again."
	if c.by == SideAPI { // what the kubelet itself knows is not known
		return "Look at the kubelet's log for this pod: the API server may refuse its status updates, as by an admission webhook on pods/status. If it does not, " + again
	}
	return "Look at the kubelet's log for this pod; " + again
}

func (c *comparison) reportedEvidence() Evidence {
	at := time.Time{}
	if s := c.p.api; c.by == SideAPI && s != nil {
		at = s.At
	} else if s := c.p.kubelet; c.by == SideKubelet && s != nil {
		at = s.At
	}
	return c.w.evidence(c.by, at, fmt.Sprintf("container %q: %s", c.name, c.w.statusText(c.status)))
}

func (c *comparison) runtimeEvidence(rt *Container) Evidence {
	return c.w.evidence(SideRuntime, rt.At, fmt.Sprintf("container %q: %s", c.name, c.w.runtimeText(rt)))
}

// runningWithoutContainer is the finding for a pod whose containers are reported as running
// although the runtime does not have them.
func (w *world) runningWithoutContainer(p *podView, by Side, missing []string) finding {
	f := finding{
		Difference: Difference{Kind: RunningWithoutContainer, Pod: p.ref, Certainty: Certain, Since: w.lastSign(p, missing)},
		needs:      []Side{by, SideRuntime}, fresh: []Side{by, SideRuntime}, news: by, atOnce: w.kubeletStopped(),
	}
	c := comparison{w: w, p: p, by: by}
	status, _ := w.reported(p)
	bare := p.bare(status)
	switch {
	case bare:
		f.Message = fmt.Sprintf("%s that %s is Running, but the runtime has no container of it.", c.says(), c.podName())
	case len(missing) == 1:
		f.Container = missing[0]
		f.Message = fmt.Sprintf("%s that container %q of %s is running, but the runtime does not have it.", c.says(), missing[0], c.podName())
	default:
		f.Message = fmt.Sprintf("%s that the containers %s of %s are running, but the runtime has none of them.", c.says(), quoted(missing), c.podName())
	}
	for _, name := range missing {
		c.name, c.status = name, podstatus.FindContainerStatus(status, name)
		f.Evidence = append(f.Evidence, c.reportedEvidence())
	}
	f.Evidence = append(f.Evidence, w.evidence(SideRuntime, time.Time{}, fmt.Sprintf("no container %s of pod %s", quoted(missing), p.nodeUID)))
	f.Do = c.doKubelet()
	f.Repair = w.repairable(p, by)
	if !w.kubeletHalted() && !bare {
		f.allow = w.busy(p, missing[0])
	}
	if w.lostByRuntime(p) {
		f.Certainty = Likely
		f.Evidence = append(f.Evidence, w.evidence(SideMachine, p.cgroup.At, fmt.Sprintf("control group %s with %d processes", p.cgroup.Path, p.cgroup.Processes)))
		f.Do = fmt.Sprintf("Processes of the pod run: check that %s is the socket of the runtime that the kubelet uses, and whether the runtime has lost its containers.", w.RuntimeAnswer.From)
		f.Repair = false // nothing that runs may be reported as gone
	}
	return f
}

// bare reports whether a status says Running but lists no containers, and the runtime has none either.
func (p *podView) bare(status *v1.PodStatus) bool {
	return status.Phase == v1.PodRunning && len(status.ContainerStatuses) == 0 && len(p.attempts) == 0
}

// lostByRuntime reports whether processes of the pod run although the runtime has no container for
// them.
func (w *world) lostByRuntime(p *podView) bool {
	return w.MachineAnswer.Known() && p.cgroup != nil && p.cgroup.Processes > 0 && len(p.running()) == 0 && !slices.ContainsFunc(p.sandboxes, func(s Sandbox) bool { return s.Ready })
}

// lastSign is the start of the newest missing container: it was gone at some time after it.
func (w *world) lastSign(p *podView, missing []string) time.Time {
	status, _ := w.reported(p)
	var at time.Time
	for _, name := range missing {
		if s := podstatus.FindContainerStatus(status, name); s != nil && s.State.Running != nil && s.State.Running.StartedAt.After(at) {
			at = s.State.Running.StartedAt.Time
		}
	}
	return at
}

// unknownToKubelet is the finding for a pod of the API that neither the kubelet nor the runtime
// has.
func (w *world) unknownToKubelet(p *podView) []finding {
	api := p.api.Pod
	if podstatus.IsTerminal(api.Status.Phase) || podstatus.IsMirror(api) || len(p.running()) > 0 {
		return nil
	}
	shown := columnWord(api)
	if api.Status.Phase != v1.PodRunning && shown != podstatus.ReasonContainerCreating {
		return nil
	}
	return []finding{{
		Difference: Difference{Kind: RunningWithoutContainer, Pod: p.ref, Certainty: Certain, Since: p.api.At,
			Message: fmt.Sprintf("The API says that %s/%s is %s on this node, but the kubelet does not have the pod and the runtime has no container of it.", p.ref.Namespace, p.ref.Name, shown),
			Evidence: []Evidence{
				w.evidence(SideAPI, p.api.At, "phase "+string(api.Status.Phase)),
				w.evidence(SideKubelet, time.Time{}, "does not list the pod"),
				w.evidence(SideRuntime, time.Time{}, "no running container of the pod"),
			},
			Do: "Restart the kubelet, which reads its pods again; if the pod stays so, delete it."},
		needs: []Side{SideAPI, SideKubelet, SideRuntime}, fresh: []Side{SideAPI, SideKubelet, SideRuntime}, news: SideAPI, allow: startGrace,
	}}
}

// columnWord is what the STATUS column of kubectl shows of a pod that has not run yet.
func columnWord(pod *v1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if wait := pod.Status.ContainerStatuses[i].State.Waiting; wait != nil && wait.Reason != "" {
			return wait.Reason
		}
	}
	return string(pod.Status.Phase)
}

func quoted(names []string) string {
	var list []string
	for _, n := range slices.Sorted(slices.Values(names)) {
		list = append(list, fmt.Sprintf("%q", n))
	}
	return strings.Join(list, ", ")
}
