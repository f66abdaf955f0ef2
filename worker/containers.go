package worker

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// sight is what a status is made from: what the runtime shows, what was reported before,
// and what the worker knows besides. It is data, as the status is.
type sight struct {
	pod *v1.Pod
	// known says that the runtime has the pod; found is what it knows, without what is
	// history since a restart of the whole pod.
	known bool
	found runtime.Pod
	// old is what was reported before, or what the API says.
	old *v1.PodStatus
	// waiting says why containers that should run do not, by name.
	waiting map[string]v1.ContainerStateWaiting
	// reborn are the containers, by ID, that run again whatever their exit code is.
	reborn map[string]bool
	// actuated are the resources that running containers, by ID, were given.
	actuated map[string]v1.ResourceRequirements
	// restartingAll says that the whole pod is being restarted.
	restartingAll bool
}

// containerStatuses is the status of each container of a list of the spec.
func (s *sight) containerStatuses(specs []v1.Container, before []v1.ContainerStatus) []v1.ContainerStatus {
	statuses := make([]v1.ContainerStatus, 0, len(specs))
	for i := range specs {
		statuses = append(statuses, s.containerStatus(&specs[i], statusNamed(before, specs[i].Name)))
	}
	return statuses
}

func (s *sight) containerStatus(spec *v1.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	tries := attemptsOf(s.found.Containers, spec.Name)
	if len(tries) == 0 {
		return s.unseen(spec, old)
	}
	status := s.seen(spec, tries[0], old)
	switch {
	case len(tries) > 1:
		status.LastTerminationState = v1.ContainerState{Terminated: terminated(&tries[1])}
	case old == nil:
	case old.State.Terminated != nil && old.ContainerID != status.ContainerID:
		status.LastTerminationState = old.State // the runtime has forgotten it
	default:
		status.LastTerminationState = old.LastTerminationState
	}
	s.explainWaiting(spec, &status)
	return status
}

// seen is the status of a container as the runtime has it.
func (s *sight) seen(spec *v1.Container, c runtime.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	image := cmp.Or(c.Image, spec.Image) // what runs, not what an edited spec asks for
	status := v1.ContainerStatus{
		Name: spec.Name, Image: image, ImageID: image, ContainerID: c.ID,
		RestartCount:       int32(c.Attempt),
		VolumeMounts:       mounts(spec),
		Resources:          spec.Resources.DeepCopy(),
		AllocatedResources: spec.Resources.Requests.DeepCopy(),
	}
	if actual, known := s.actuated[c.ID]; known {
		status.Resources = actual.DeepCopy()
	}
	if old != nil {
		status.RestartCount = max(status.RestartCount, old.RestartCount)
	}
	switch c.State {
	case runtime.Running:
		status.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt)}
		if old != nil && old.ContainerID == c.ID { // where the probes have not spoken yet
			status.Ready, status.Started = old.Ready, old.Started
		}
	case runtime.Exited:
		status.State.Terminated = terminated(&c)
	default:
		status.State.Waiting = s.defaultWaiting()
	}
	return status
}

// unseen is the status of a container that the runtime does not have: not yet, or no more.
func (s *sight) unseen(spec *v1.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	switch {
	case old == nil, old.State.Waiting != nil:
	case s.restartingAll:
		return s.removed(spec, old)
	case old.State.Terminated != nil:
		status := *old.DeepCopy()
		s.explainWaiting(spec, &status)
		return status
	}
	status := v1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, VolumeMounts: mounts(spec),
		State: v1.ContainerState{Waiting: s.defaultWaiting()},
	}
	if old != nil {
		status.RestartCount, status.LastTerminationState = old.RestartCount, old.LastTerminationState
		if old.ContainerID != "" && s.pod.DeletionTimestamp == nil {
			status.RestartCount++ // the next start will be one more
		}
		if old.State.Running != nil {
			status.LastTerminationState = v1.ContainerState{Terminated: vanished()}
		}
	}
	if s.inferred(spec) {
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: runtime.ReasonCompleted, Message: messageInferred,
		}}
		return status
	}
	s.explainWaiting(spec, &status)
	return status
}

// removed is the status of a container that made way for a restart of the whole pod.
func (s *sight) removed(spec *v1.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, VolumeMounts: mounts(spec),
		RestartCount: old.RestartCount + 1,
		State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{
			Reason: reasonRestartingAll, Message: messageRestartingAll,
		}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: reasonRestartingAll, Message: messageRestartingAll, ExitCode: runtime.ExitCodeUnknown,
		}},
	}
}

// vanished is the end of a container that ran and is gone: how it ended is unknown, but
// to run it as if for the first time could run a job twice.
func vanished() *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		Reason: runtime.ReasonUnknown, Message: messageVanished, ExitCode: runtime.ExitCodeUnknown,
	}
}

// inferred reports whether an init container without any record must have succeeded,
// because a regular container was started after it.
func (s *sight) inferred(spec *v1.Container) bool {
	return !isRegular(s.pod, spec.Name) && !podstatus.IsSidecar(spec) && anyRegular(s.pod, ofThisPlace(s.found.Containers))
}

// explainWaiting turns a container that ended and is to run again into a waiting one, if
// there is something to say about the wait.
func (s *sight) explainWaiting(spec *v1.Container, status *v1.ContainerStatus) {
	exit := lastExit(status)
	if status.State.Running != nil || s.pod.DeletionTimestamp != nil {
		return
	}
	again := exit == nil || s.runsAgain(spec, exit)
	reason, said := s.waiting[spec.Name]
	if !said && exit != nil && s.reborn[exit.ContainerID] {
		// A container that a probe has stopped is not shown as ended: with exit code 0
		// under OnFailure it could never come back (T3).
		reason, said = *s.defaultWaiting(), true
	}
	if !again || !said {
		return
	}
	if status.State.Terminated != nil {
		status.LastTerminationState = status.State
	}
	status.State = v1.ContainerState{Waiting: &reason}
}

func (s *sight) runsAgain(spec *v1.Container, exit *v1.ContainerStateTerminated) bool {
	return exit.Reason == reasonRestartingAll || s.reborn[exit.ContainerID] ||
		podstatus.ShouldRestart(s.pod, spec, exit.ExitCode)
}

func (s *sight) defaultWaiting() *v1.ContainerStateWaiting {
	if len(s.pod.Spec.InitContainers) > 0 {
		return &v1.ContainerStateWaiting{Reason: reasonPodInitializing}
	}
	return &v1.ContainerStateWaiting{Reason: reasonContainerCreating}
}

// terminated is how the API shows the end of a container.
func terminated(c *runtime.Container) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: c.ExitCode, Signal: c.Signal, Reason: c.Reason, Message: c.Message, ContainerID: c.ID,
		StartedAt: metav1.NewTime(c.StartedAt), FinishedAt: metav1.NewTime(c.FinishedAt),
	}
}

func mounts(spec *v1.Container) []v1.VolumeMountStatus {
	var all []v1.VolumeMountStatus
	for _, m := range spec.VolumeMounts {
		status := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := v1.RecursiveReadOnlyDisabled
			status.RecursiveReadOnly = &mode
		}
		all = append(all, status)
	}
	return all
}
