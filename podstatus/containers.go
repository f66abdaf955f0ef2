package podstatus

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
)

const (
	messageDeadlineExceeded = "Pod was active on the node longer than the specified deadline"
	messageVanished         = "The container could not be located when the pod was deleted.  The container used to be Running"
	messageRestartingAll    = "The container is removed because RestartAllContainers in place"
	messageInferred         = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally"
)

// attemptsOf returns the newest attempt of a container and the one before it, or nil.
func (g *generation) attemptsOf(name string) (newest, before *Attempt) {
	for i := range g.facts.Attempts {
		switch a := &g.facts.Attempts[i]; {
		case a.Container != name:
		case newest == nil || a.Number > newest.Number:
			newest, before = a, newest
		case before == nil || a.Number > before.Number:
			before = a
		}
	}
	return newest, before
}

// Terminated returns the end of the container in the form of the API.
func (a *Attempt) Terminated() *v1.ContainerStateTerminated {
	reason := a.Reason
	switch {
	case reason != "":
	case a.ExitCode == 0:
		reason = podrules.ReasonCompleted
	default:
		reason = podrules.ReasonError
	}
	return &v1.ContainerStateTerminated{
		ExitCode: a.ExitCode, Signal: a.Signal, Reason: reason, Message: a.Message, ContainerID: a.ID,
		StartedAt: metav1.NewTime(a.StartedAt), FinishedAt: metav1.NewTime(a.FinishedAt),
	}
}

// containerStatuses returns the status of each container of a list of the spec.
func (g *generation) containerStatuses(specs []v1.Container, before []v1.ContainerStatus) []v1.ContainerStatus {
	statuses := make([]v1.ContainerStatus, 0, len(specs))
	for i := range specs {
		statuses = append(statuses, g.containerStatus(&specs[i], podrules.StatusNamed(before, specs[i].Name)))
	}
	return statuses
}

// ephemeralStatuses returns the statuses of ephemeral containers, which are never restarted.
func (g *generation) ephemeralStatuses(specs []v1.EphemeralContainer, before []v1.ContainerStatus) []v1.ContainerStatus {
	var statuses []v1.ContainerStatus
	for i := range specs {
		spec := v1.Container(specs[i].EphemeralContainerCommon)
		if newest, _ := g.attemptsOf(spec.Name); newest != nil {
			statuses = append(statuses, g.started(&spec, newest, podrules.StatusNamed(before, spec.Name)))
			continue
		}
		waiting := g.defaultWaiting()
		if why, given := g.facts.Waiting[spec.Name]; given {
			waiting = &why
		}
		statuses = append(statuses, v1.ContainerStatus{Name: spec.Name, Image: spec.Image, State: v1.ContainerState{Waiting: waiting}})
	}
	return statuses
}

func (g *generation) containerStatus(spec *v1.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	newest, before := g.attemptsOf(spec.Name)
	if newest == nil {
		return g.unstarted(spec, old)
	}
	status := g.started(spec, newest, old)
	switch {
	case before != nil:
		status.LastTerminationState = v1.ContainerState{Terminated: before.Terminated()}
	case old == nil:
	case old.State.Terminated != nil && old.ContainerID != status.ContainerID:
		status.LastTerminationState = old.State // the runtime has forgotten it
	default:
		status.LastTerminationState = old.LastTerminationState
	}
	g.explainWaiting(spec, &status)
	return status
}

// started is the status of a container that the node has a record of.
func (g *generation) started(spec *v1.Container, a *Attempt, old *v1.ContainerStatus) v1.ContainerStatus {
	image := cmp.Or(a.Image, spec.Image) // what runs, not what an edited spec asks for
	status := v1.ContainerStatus{
		Name: spec.Name, Image: image, ImageID: cmp.Or(a.ImageID, image), ContainerID: a.ID,
		RestartCount:       int32(a.Number),
		VolumeMounts:       mountStatuses(spec),
		Resources:          &spec.Resources,
		AllocatedResources: spec.Resources.Requests,
	}
	if actual, known := g.facts.Resources[a.ID]; known {
		status.Resources = &actual
	}
	if old != nil {
		status.RestartCount = max(status.RestartCount, old.RestartCount)
	}
	switch a.State {
	case AttemptRunning:
		status.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(a.StartedAt)}
		if old != nil && old.ContainerID == a.ID {
			status.Ready, status.Started = old.Ready, old.Started
		}
	case AttemptExited:
		status.State.Terminated = a.Terminated()
	default:
		// There is no container yet, only an attempt, and its image is known after a pull.
		status.ContainerID, status.ImageID = "", a.ImageID
		status.State.Waiting = g.defaultWaiting()
		if a.Reason != "" {
			status.State.Waiting = &v1.ContainerStateWaiting{Reason: a.Reason, Message: a.Message}
		}
	}
	if g.facts.Probe == nil {
		g.setProbed(spec, a, &status)
	}
	return status
}

// setProbed sets Ready and Started from what the attempt says, or from what follows from the
// spec. They come with the values that were reported for the container.
func (g *generation) setProbed(spec *v1.Container, a *Attempt, status *v1.ContainerStatus) {
	runs := a.State == AttemptRunning
	started := runs && (spec.StartupProbe == nil || podrules.IsStarted(status))
	if runs && a.Started != nil {
		started = *a.Started
	}
	ready := started && (spec.ReadinessProbe == nil || status.Ready)
	if started && a.Ready != nil {
		ready = *a.Ready
	}
	if podrules.SpecNamed(g.pod.Spec.InitContainers, spec.Name) != nil && !podrules.IsSidecar(spec) {
		ready = a.State == AttemptExited && a.ExitCode == 0
	}
	status.Ready, status.Started = ready, &started
}

// unstarted is the status of a container without a record: not yet, or no longer.
func (g *generation) unstarted(spec *v1.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	switch {
	case old == nil, old.State.Waiting != nil:
	case podrules.IsTrue(g.old.Conditions, v1.AllContainersRestarting):
		return removedForRestart(spec, old)
	case old.State.Terminated != nil:
		status := *old
		g.explainWaiting(spec, &status)
		return status
	}
	status := v1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, VolumeMounts: mountStatuses(spec),
		State: v1.ContainerState{Waiting: g.defaultWaiting()},
	}
	if old != nil {
		status.RestartCount, status.LastTerminationState = old.RestartCount, old.LastTerminationState
		if old.ContainerID != "" && g.pod.DeletionTimestamp == nil {
			status.RestartCount++ // the next start will be one more
		}
		if old.State.Running != nil {
			status.LastTerminationState = v1.ContainerState{Terminated: vanished()}
		}
	}
	if g.mustHaveSucceeded(spec) {
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: podrules.ReasonCompleted, Message: messageInferred,
		}}
		return status
	}
	g.explainWaiting(spec, &status)
	return status
}

// removedForRestart is the status of a container that made way for a restart of the whole pod.
func removedForRestart(spec *v1.Container, old *v1.ContainerStatus) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, VolumeMounts: mountStatuses(spec),
		RestartCount: old.RestartCount + 1,
		State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{
			Reason: podrules.ReasonRestartingAllContainers, Message: messageRestartingAll,
		}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: podrules.ReasonRestartingAllContainers, Message: messageRestartingAll, ExitCode: podrules.UnseenExitCode,
		}},
	}
}

// vanished is the end of a container that ran and is gone: how it ended is unknown, but
// to run it as if for the first time could run a job twice.
func vanished() *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		Reason: podrules.ReasonContainerStatusUnknown, Message: messageVanished, ExitCode: podrules.UnseenExitCode,
	}
}

// mustHaveSucceeded reports whether an init container without a record must have succeeded,
// because a regular container was started after it.
func (g *generation) mustHaveSucceeded(spec *v1.Container) bool {
	return podrules.SpecNamed(g.pod.Spec.InitContainers, spec.Name) != nil && !podrules.IsSidecar(spec) && g.hasInitialized()
}

// explainWaiting turns a container that ended and is to run again into a waiting one, if
// facts explains the wait.
func (g *generation) explainWaiting(spec *v1.Container, status *v1.ContainerStatus) {
	exit := podrules.LastExit(status)
	if status.State.Running != nil || g.pod.DeletionTimestamp != nil {
		return
	}
	again := exit == nil || g.facts.Restarting[exit.ContainerID] || podrules.RunsAgain(g.pod, spec, exit)
	why, given := g.facts.Waiting[spec.Name]
	if !given && exit != nil && g.facts.Restarting[exit.ContainerID] {
		// A container that the node has stopped is not shown as ended: with exit code 0
		// under OnFailure it could never come back (T3).
		why, given = *g.defaultWaiting(), true
	}
	if !again || !given {
		return
	}
	if status.State.Terminated != nil {
		status.LastTerminationState = status.State
	}
	status.State = v1.ContainerState{Waiting: &why}
}

func (g *generation) defaultWaiting() *v1.ContainerStateWaiting {
	if len(g.pod.Spec.InitContainers) > 0 {
		return &v1.ContainerStateWaiting{Reason: podrules.ReasonPodInitializing}
	}
	return &v1.ContainerStateWaiting{Reason: podrules.ReasonContainerCreating}
}

func mountStatuses(spec *v1.Container) []v1.VolumeMountStatus {
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
