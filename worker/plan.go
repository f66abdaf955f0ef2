package worker

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// picture is all that decides what a pod needs next. It is data: the same picture gives
// the same plan.
type picture struct {
	pod *v1.Pod
	// containers are what the runtime remembers, as it lists them, without what is
	// history since a restart of the whole pod.
	containers []runtime.Container
	// epochs are the first attempts, by name, since then.
	epochs map[string]int
	// status is what would be reported now, with what the probes say filled in.
	status *v1.PodStatus
	// unhealthy are the running containers, by ID, that a probe has given up.
	unhealthy map[string]runtime.ProbeKind
	// reborn are the containers, by ID, that were stopped for being unhealthy and run
	// again whatever their exit code is.
	reborn map[string]bool
	// backOffs and retries are the memory of restarts and of starts that failed, by name.
	backOffs map[string]backOff
	retries  map[string]time.Time
	// ends are when this process first saw the ends of containers, by ID. Unlike the
	// recorded times they have a monotonic clock reading.
	ends map[string]time.Time
	now  time.Time
}

// beginsAgain reports whether the pod begins with its first init container after a restart
// of the machine. One that never restarts goes on with what was not started yet: to run an
// init container twice would be a restart.
func (pic *picture) beginsAgain() bool { return pic.pod.Spec.RestartPolicy != v1.RestartPolicyNever }

// ranHere reports whether an init container has run in the present place of the pod: the
// runtime remembers it, or one that comes after it.
func (pic *picture) ranHere(index int) bool {
	here := ofThisPlace(pic.containers)
	return slices.ContainsFunc(pic.pod.Spec.InitContainers[index:], func(c v1.Container) bool {
		return attemptsOf(here, c.Name).newest() != nil
	})
}

// valid are the containers whose work still holds.
func (pic *picture) valid() []runtime.Container {
	if pic.beginsAgain() {
		return ofThisPlace(pic.containers)
	}
	return pic.containers
}

// endOf is when a container ended, on a clock that does not step if this process saw it.
func (pic *picture) endOf(exit *v1.ContainerStateTerminated) time.Time {
	if seen, ok := pic.ends[exit.ContainerID]; ok {
		return seen
	}
	return exit.FinishedAt.Time
}

// plan is what to do for a pod that should run.
type plan struct {
	starts []start
	stops  []condemn
	// waits are the containers that wait for the end of their back-off.
	waits map[string]v1.ContainerStateWaiting
	// end says that the work of the pod is done: only sidecars are left, if anything.
	end bool
	// wake is when the plan changes though nothing happens; zero is never.
	wake time.Time
}

// start is a container to start now.
type start struct {
	container *v1.Container
	attempt   int
	backOff   backOff // the memory once it is started
}

// condemn is a running container to stop: because a probe has given it up, or because its
// definition has changed.
type condemn struct {
	container *v1.Container
	id        string
	probe     runtime.ProbeKind // empty if the definition has changed
}

// makePlan decides what to do for a pod that should run: init containers one after the
// other, sidecars among them kept running, then all regular containers at once.
func makePlan(pic *picture) plan {
	p := plan{waits: map[string]v1.ContainerStateWaiting{}}
	if !p.initialize(pic) {
		return p
	}
	left := false
	for i := range pic.pod.Spec.Containers {
		if p.keep(pic, &pic.pod.Spec.Containers[i]) {
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
func (p *plan) initialize(pic *picture) bool {
	initialized := anyRegular(pic.pod, pic.valid())
	for i := range pic.pod.Spec.InitContainers {
		c := &pic.pod.Spec.InitContainers[i]
		if podstatus.IsSidecar(c) {
			p.keep(pic, c)
			if !initialized && !podstatus.IsStarted(pic.statusOf(c.Name)) {
				return false
			}
			continue
		}
		if !initialized && !p.complete(pic, i) {
			return false
		}
	}
	return true
}

// complete plans one run of an init container until it succeeds, and reports whether it has.
func (p *plan) complete(pic *picture, index int) bool {
	c := &pic.pod.Spec.InitContainers[index]
	if alive(attemptsOf(pic.containers, c.Name).newest()) {
		return false
	}
	exit := podstatus.LastExit(pic.statusOf(c.Name))
	if pic.beginsAgain() && !pic.ranHere(index) {
		exit = nil
	}
	if exit != nil && exit.ExitCode == 0 && exit.Reason != podstatus.ReasonRestartingAllContainers {
		return true
	}
	p.restart(pic, c, exit)
	return false
}

// keep plans a container that should run, and reports whether it runs or will.
func (p *plan) keep(pic *picture, c *v1.Container) bool {
	newest := attemptsOf(pic.containers, c.Name).newest()
	if alive(newest) {
		if newest.Image != "" && newest.Image != c.Image {
			p.stops = append(p.stops, condemn{container: c, id: newest.ID})
		} else if probe, bad := pic.unhealthy[newest.ID]; bad {
			p.stops = append(p.stops, condemn{container: c, id: newest.ID, probe: probe})
		}
		return true
	}
	return p.restart(pic, c, podstatus.LastExit(pic.statusOf(c.Name)))
}

// restart plans the next start of a container that does not run, now or when its back-off
// is over, and reports whether there is one.
func (p *plan) restart(pic *picture, c *v1.Container, exit *v1.ContainerStateTerminated) bool {
	if exit != nil && !pic.reborn[exit.ContainerID] && !podstatus.RunsAgain(pic.pod, c, exit) {
		return false
	}
	s := start{container: c, attempt: pic.nextAttempt(c.Name), backOff: pic.backOffs[c.Name]}
	due := pic.retries[c.Name]
	if exit != nil && exit.Reason != podstatus.ReasonRestartingAllContainers {
		ended := pic.endOf(exit)
		if back := s.backOff.due(ended, pic.now); back.After(pic.now) {
			due = back
			p.waits[c.Name] = crashLooping(pic.pod, c.Name, s.backOff.delay)
		}
		s.backOff = s.backOff.next(ended, pic.now)
	}
	if due.After(pic.now) {
		p.wake = earliest(p.wake, due)
		return true
	}
	p.starts = append(p.starts, s)
	return true
}

// survives reports whether a container that is stopped runs again. It does not choose its
// exit code, so that only the policy Never keeps one down that a probe has given up. One
// whose definition has changed runs again under any policy, as with the kubelet.
func (c *condemn) survives(pod *v1.Pod) bool {
	return c.probe == "" || survivesProbe(pod, c.container)
}

func survivesProbe(pod *v1.Pod, c *v1.Container) bool {
	if c.RestartPolicy != nil {
		return *c.RestartPolicy != v1.ContainerRestartPolicyNever
	}
	return pod.Spec.RestartPolicy != v1.RestartPolicyNever
}

// nextAttempt counts on from what the runtime remembers, or, if it has lost the
// container, from what was reported.
func (pic *picture) nextAttempt(name string) int {
	if newest := attemptsOf(pic.containers, name).newest(); newest != nil {
		return newest.Attempt + 1
	}
	status := pic.statusOf(name)
	if status == nil {
		return pic.epochs[name]
	}
	count := int(status.RestartCount)
	if status.State.Terminated != nil {
		count++
	}
	return max(count, pic.epochs[name])
}

func (pic *picture) statusOf(name string) *v1.ContainerStatus {
	return podstatus.FindContainerStatus(pic.status, name)
}
