package audit

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// startingAllowance is how long the kubelet may be busy with starting a container of a pod, such as
// pulling a large image, before its silence about the others of the pod counts.
const startingAllowance = 30 * time.Minute

// busy returns how much longer than usual the kubelet may take to report a container of the pod.
// The kubelet does one thing at a time for a pod, and reports nothing of the pod meanwhile:
//   - it pulls an image, creates a container, or waits for a postStart hook. That excuses a container
//     that is not reported yet. One that is reported as running and has exited is untrue at once, and
//     traffic goes to it (kubernetes #91667);
//   - it stops containers, each within its grace: all of a pod that is deleted, evicted, or over its
//     deadline, or one that failed its probe. So an exit may be reported only when the others have ended.
func (w *world) busy(p *podView, name string) time.Duration {
	pod := p.pod()
	status, _ := w.reported(p)
	if st := podstatus.FindContainerStatus(status, name); (st == nil || st.State.Running == nil) && starting(p, pod, status) {
		return startingAllowance
	}
	if pod.DeletionTimestamp != nil || podstatus.IsTerminal(pod.Status.Phase) {
		return grace(pod)
	}
	var allow time.Duration
	for other := range regularAndSidecars(pod) {
		if c := p.newest(other.Name); other.Name == name || c == nil || c.State != ContainerRunning {
			continue
		}
		allow = max(allow, grace(pod))
		for _, probe := range []*v1.Probe{other.LivenessProbe, other.StartupProbe} {
			if probe != nil {
				allow = max(allow, probeGrace(pod, probe))
			}
		}
	}
	return allow
}

// starting reports whether the kubelet may be starting a container of the pod.
func starting(p *podView, pod *v1.Pod, status *v1.PodStatus) bool {
	if initRuns(p, pod) {
		return false // the kubelet waits for its end, which is an event
	}
	for i := range pod.Spec.InitContainers {
		if startingOne(p, &pod.Spec.InitContainers[i], status) {
			return true
		}
		if !podstatus.IsSidecar(&pod.Spec.InitContainers[i]) && !hasRun(p, pod.Spec.InitContainers[i].Name, status) {
			return false // what comes after it is not due yet
		}
	}
	for i := range pod.Spec.Containers {
		if startingOne(p, &pod.Spec.Containers[i], status) {
			return true
		}
	}
	return false
}

func startingOne(p *podView, spec *v1.Container, status *v1.PodStatus) bool {
	newest := p.newest(spec.Name)
	st := podstatus.FindContainerStatus(status, spec.Name)
	if newest != nil && newest.State == ContainerCreated {
		return true
	}
	waiting := st == nil || st.State.Waiting != nil
	if newest != nil && newest.State == ContainerRunning {
		// The status before the hook is that of a container that waits, or has ended and is started again.
		return (st == nil || st.State.Running == nil) && spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil
	}
	if newest != nil && newest.State == ContainerExited && !newest.Started.IsZero() && (st == nil || notYetStarted(st)) {
		return false // it was started, and has ended since
	}
	return waiting && (st == nil || st.State.Waiting.Reason != "CrashLoopBackOff")
}

func hasRun(p *podView, name string, status *v1.PodStatus) bool {
	if c := p.newest(name); c != nil && c.State == ContainerExited {
		return true
	}
	st := podstatus.FindContainerStatus(status, name)
	return st != nil && st.State.Terminated != nil
}

func initRuns(p *podView, pod *v1.Pod) bool {
	for i := range pod.Spec.InitContainers {
		c := p.newest(pod.Spec.InitContainers[i].Name)
		if c != nil && c.State == ContainerRunning && !podstatus.IsSidecar(&pod.Spec.InitContainers[i]) {
			return true
		}
	}
	return false
}

// regularAndSidecars are the containers that run beside each other.
func regularAndSidecars(pod *v1.Pod) func(func(*v1.Container) bool) {
	return func(yield func(*v1.Container) bool) {
		for i := range pod.Spec.InitContainers {
			if podstatus.IsSidecar(&pod.Spec.InitContainers[i]) && !yield(&pod.Spec.InitContainers[i]) {
				return
			}
		}
		for i := range pod.Spec.Containers {
			if !yield(&pod.Spec.Containers[i]) {
				return
			}
		}
	}
}

// defaultGrace is the grace period of a pod whose spec has none.
const defaultGrace = 30 * time.Second

// grace is how long the containers of a pod may take to stop.
func grace(pod *v1.Pod) time.Duration {
	g := defaultGrace
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		g = time.Duration(*s) * time.Second
	}
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		g = max(g, time.Duration(*s)*time.Second)
	}
	return g
}

func probeGrace(pod *v1.Pod, probe *v1.Probe) time.Duration {
	if s := probe.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return grace(pod)
}
