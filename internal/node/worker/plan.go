package worker

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// planInput is all that decides what a pod needs next. It is data: the same planInput gives
// the same plan.
type planInput struct {
	pod *v1.Pod
	// containers are the runtime's containers, as it lists them, without older attempts from before a
	// restart of the whole pod.
	containers []runtime.Container
	// minAttempt are the first attempts, by name, since then.
	minAttempt map[string]int
	// status is what would be reported now, with what the probes say filled in.
	status *v1.PodStatus
	// unhealthy are the running containers, by ID, that a probe has given up.
	unhealthy map[string]runtime.ProbeKind
	// restarts are the running containers, by ID, that are to be restarted, and why.
	restarts map[string]string
	// restarting are the containers, by ID, that were stopped for being unhealthy and run
	// again whatever their exit code is.
	restarting map[string]bool
	// backOffs and retries are the record of restarts and of starts that failed, by name.
	backOffs map[string]backOff
	retries  map[string]time.Time
	// ends are when this process first saw the ends of containers, by ID. Unlike the
	// recorded times they have a monotonic clock reading.
	ends map[string]time.Time
	now  time.Time
}

// startsOver reports whether the pod begins with its first init container after a restart of the
// machine. A pod that never restarts continues with the containers that were not started yet: to
// run an init container twice would be a restart.
func (given *planInput) startsOver() bool {
	return given.pod.Spec.RestartPolicy != v1.RestartPolicyNever
}

// ranHere reports whether an init container has run in the present sandbox of the pod: the runtime
// lists it or a later one.
func (given *planInput) ranHere(index int) bool {
	here := ofThisSandbox(given.containers)
	return slices.ContainsFunc(given.pod.Spec.InitContainers[index:], func(c v1.Container) bool {
		return attemptsOf(here, c.Name).newest() != nil
	})
}

// valid are the containers whose work still holds.
func (given *planInput) valid() []runtime.Container {
	if given.startsOver() {
		return ofThisSandbox(given.containers)
	}
	return given.containers
}

// endOf is when a container ended, on a clock that does not step if this process saw it.
func (given *planInput) endOf(exit *v1.ContainerStateTerminated) time.Time {
	if seen, ok := given.ends[exit.ContainerID]; ok {
		return seen
	}
	return exit.FinishedAt.Time
}

// plan is what to do for a pod that should run.
type plan struct {
	starts []start
	stops  []kill
	// waits are the containers that wait for the end of their back-off.
	waits map[string]v1.ContainerStateWaiting
	// dues are when those containers are started that are not started now, by name.
	dues map[string]time.Time
	// end reports that the work of the pod is done: only sidecars are left, if anything.
	end bool
	// wake is when the plan changes though nothing happens; zero is never.
	wake time.Time
}

// start is a container to start now.
type start struct {
	container *v1.Container
	attempt   int
	backOff   backOff // the record once it is started
}

// kill is a running container to stop: because a probe has given it up, because its restart was asked
// for, or because its definition has changed.
type kill struct {
	container *v1.Container
	id        string
	probe     runtime.ProbeKind // empty if it was none
	asked     string            // why a restart was asked for, empty if it was not
}

// makePlan decides what to do for a pod that should run: init containers one after the
// other, sidecars among them kept running, then all regular containers at once.
func makePlan(given *planInput) plan {
	p := plan{waits: map[string]v1.ContainerStateWaiting{}}
	p.startEphemeral(given)
	if !p.initialize(given) {
		return p
	}
	left := false
	for i := range given.pod.Spec.Containers {
		if p.keep(given, &given.pod.Spec.Containers[i]) {
			left = true
		}
	}
	if !left {
		// A sidecar must not keep a pod going whose work is done.
		return plan{end: true}
	}
	return p
}

// initialize plans the init containers and reports whether regular ones may run. Once a
// regular container was started, only sidecars are looked after. A restart of the machine
// undoes what init containers have done, so that they run again, from the first, as in a
// new sandbox of the kubelet.
func (p *plan) initialize(given *planInput) bool {
	initialized := anyRegular(given.pod, given.valid())
	for i := range given.pod.Spec.InitContainers {
		c := &given.pod.Spec.InitContainers[i]
		if podstatus.IsSidecar(c) {
			p.keep(given, c)
			if !initialized && !podstatus.IsStarted(given.statusOf(c.Name)) {
				return false
			}
			continue
		}
		if !initialized && !p.complete(given, i) {
			return false
		}
	}
	return true
}

// startEphemeral plans the one run of each ephemeral container, as that of kubectl debug.
func (p *plan) startEphemeral(given *planInput) {
	for i := range given.pod.Spec.EphemeralContainers {
		c := (*v1.Container)(&given.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if attemptsOf(given.containers, c.Name).newest() == nil && !wasStarted(given.status.EphemeralContainerStatuses, c.Name) {
			p.restart(given, c, nil)
		}
	}
}

// wasStarted reports whether the status shows that the container was started: the runtime may have lost it.
func wasStarted(statuses []v1.ContainerStatus, name string) bool {
	return slices.ContainsFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == name && s.ContainerID != "" })
}

// complete plans one run of an init container until it succeeds, and reports whether it has.
func (p *plan) complete(given *planInput, index int) bool {
	c := &given.pod.Spec.InitContainers[index]
	if alive(attemptsOf(given.containers, c.Name).newest()) {
		return false
	}
	exit := podstatus.LastExit(given.statusOf(c.Name))
	if given.startsOver() && !given.ranHere(index) {
		exit = nil
	}
	if exit != nil && exit.ExitCode == 0 && exit.Reason != podstatus.ReasonRestartingAllContainers {
		return true
	}
	p.restart(given, c, exit)
	return false
}

// keep plans a container that should run, and reports whether it runs or will.
func (p *plan) keep(given *planInput, c *v1.Container) bool {
	newest := attemptsOf(given.containers, c.Name).newest()
	if alive(newest) {
		if newest.Image != "" && newest.Image != c.Image {
			p.stops = append(p.stops, kill{container: c, id: newest.ID})
		} else if probe, bad := given.unhealthy[newest.ID]; bad {
			p.stops = append(p.stops, kill{container: c, id: newest.ID, probe: probe})
		} else if why, asked := given.restarts[newest.ID]; asked {
			p.stops = append(p.stops, kill{container: c, id: newest.ID, asked: why})
		}
		return true
	}
	return p.restart(given, c, podstatus.LastExit(given.statusOf(c.Name)))
}

// restart plans the next start of a container that does not run, now or when its back-off
// is over, and reports whether there is one.
func (p *plan) restart(given *planInput, c *v1.Container, exit *v1.ContainerStateTerminated) bool {
	if exit != nil && !given.restarting[exit.ContainerID] && !podrules.RunsAgain(given.pod, c, exit) {
		return false
	}
	s := start{container: c, attempt: given.nextAttempt(c.Name), backOff: given.backOffs[c.Name]}
	due := given.retries[c.Name]
	if exit != nil && exit.Reason != podstatus.ReasonRestartingAllContainers {
		ended := given.endOf(exit)
		if back := s.backOff.due(ended, given.now); back.After(given.now) {
			due = back
			p.waits[c.Name] = crashLooping(given.pod, c.Name, s.backOff.delay)
		}
		s.backOff = s.backOff.next(ended, given.now)
	}
	if due.After(given.now) {
		p.wake = instant.Earlier(p.wake, due)
		if p.dues == nil {
			p.dues = map[string]time.Time{}
		}
		p.dues[c.Name] = due
		return true
	}
	p.starts = append(p.starts, s)
	return true
}

// runsAgain reports whether a container that is stopped runs again. runsAgain does not choose its
// exit code, so that only the policy Never keeps one down that a probe or a rule has given up. One
// whose definition has changed runs again under any policy, as with the kubelet.
func (c *kill) runsAgain(pod *v1.Pod) bool {
	return c.probe == "" && c.asked == "" || runsAgainAfterProbe(pod, c.container)
}

func runsAgainAfterProbe(pod *v1.Pod, c *v1.Container) bool {
	if c.RestartPolicy != nil {
		return *c.RestartPolicy != v1.ContainerRestartPolicyNever
	}
	return pod.Spec.RestartPolicy != v1.RestartPolicyNever
}

// nextAttempt counts on from the runtime's attempts or, if the runtime has lost the container, from
// the reported count.
func (given *planInput) nextAttempt(name string) int {
	if newest := attemptsOf(given.containers, name).newest(); newest != nil {
		return newest.Attempt + 1
	}
	status := given.statusOf(name)
	if status == nil {
		return given.minAttempt[name]
	}
	count := int(status.RestartCount)
	if status.State.Terminated != nil {
		count++
	}
	return max(count, given.minAttempt[name])
}

func (given *planInput) statusOf(name string) *v1.ContainerStatus {
	return podstatus.FindContainerStatus(given.status, name)
}
