package virtualkubelet

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// Kind is the kind of error in a report.
type Kind string

// The kinds of repairs.
const (
	// NoUID: the report had no UID, and was used for the pod of that name.
	NoUID Kind = "no-uid"
	// OtherUID: the report was about another pod of that name, and was dropped.
	OtherUID Kind = "other-uid"
	// PhaseBack: the pod had ended, or had been Running, and was reported in an earlier phase.
	PhaseBack Kind = "phase-back"
	// PhaseUnknown: the phase was invalid or Unknown.
	PhaseUnknown Kind = "phase-unknown"
	// PhaseLate: all containers had ended for good, but the phase was not terminal.
	PhaseLate Kind = "phase-late"
	// EndedWhileRunning: the phase was terminal while a container was reported running.
	EndedWhileRunning Kind = "ended-while-running"
	// BackFromTheDead: a container that had ended for good was reported running or waiting.
	BackFromTheDead Kind = "back-from-the-dead"
	// Uncounted: a container was restarted, but the restart count did not grow.
	Uncounted Kind = "uncounted-restart"
	// TimeBack: a start or end time changed, or lay before an event that it must follow.
	TimeBack Kind = "time-back"
	// BadContainer: a container status was for an unknown container, duplicate, or invalid.
	BadContainer Kind = "bad-container"
	// NoContainers: the pod was reported Running without a status of its containers.
	NoContainers Kind = "no-containers"
	// Readiness: the Ready condition and the containers contradicted each other.
	Readiness Kind = "readiness"
	// Foreign: a condition of a type that belongs to other writers.
	Foreign Kind = "foreign-condition"
	// Vanished: the provider no longer had a pod that had run.
	Vanished Kind = "vanished"
)

// Repaired is an error in a report of a provider that was repaired.
type Repaired struct {
	Kind Kind
	// Container is the name of the container, empty for the pod.
	Container string
	// Text describes the repair in one sentence.
	Text string
}

// Repair corrects a report of a provider by the rules of pod status. The returned status is complete and may follow
// previous, the status reported before. Repair also returns the repairs. The arguments are not modified or kept.
func Repair(pod *v1.Pod, reported, previous v1.PodStatus, now time.Time) (v1.PodStatus, []Repaired) {
	r := &repairing{pod: pod, old: &previous, now: now}
	if podstatus.IsTerminal(previous.Phase) {
		if reported.Phase != previous.Phase {
			r.note(PhaseBack, "", "the pod has ended as %s and was reported %q", previous.Phase, reported.Phase)
		}
		return *previous.DeepCopy(), r.repairs
	}
	status := *reported.DeepCopy()
	status.Conditions = r.conditions(status.Conditions)
	status.InitContainerStatuses = r.containers(pod.Spec.InitContainers, status.InitContainerStatuses, previous.InitContainerStatuses)
	status.ContainerStatuses = r.containers(pod.Spec.Containers, status.ContainerStatuses, previous.ContainerStatuses)
	status.EphemeralContainerStatuses = previous.DeepCopy().EphemeralContainerStatuses // no provider runs them
	r.addresses(&status)
	r.running(&status)
	r.phase(&status)
	r.readiness(&status)
	r.start(&status)
	return podstatus.Complete(pod, status, previous, now), r.repairs
}

type repairing struct {
	pod     *v1.Pod
	old     *v1.PodStatus
	now     time.Time
	ready   *bool // what the Ready condition of the report says
	repairs []Repaired
}

func (r *repairing) note(kind Kind, container, format string, args ...any) {
	r.repairs = append(r.repairs, Repaired{Kind: kind, Container: container, Text: fmt.Sprintf(format, args...)})
}

// conditions keeps no condition of the report: the kubelet's conditions follow from the containers, and other
// conditions belong to other writers.
func (r *repairing) conditions(reported []v1.PodCondition) []v1.PodCondition {
	for _, c := range reported {
		switch {
		case c.Type == v1.PodReady:
			ready := c.Status == v1.ConditionTrue
			r.ready = &ready
		case !podstatus.IsOwned(c.Type):
			r.note(Foreign, "", "condition %q belongs to another writer and is not sent", c.Type)
		}
	}
	return nil
}

// containers are the reported statuses of the spec's containers, each once.
func (r *repairing) containers(specs []v1.Container, reported, before []v1.ContainerStatus) []v1.ContainerStatus {
	var kept []v1.ContainerStatus
	for i := range reported {
		status := &reported[i]
		spec := named(specs, status.Name, func(c *v1.Container) string { return c.Name })
		switch {
		case spec == nil:
			r.note(BadContainer, status.Name, "the pod has no container %q", status.Name)
			continue
		case named(kept, status.Name, nameOf) != nil:
			r.note(BadContainer, status.Name, "container %q was reported twice", status.Name)
			continue
		}
		r.single(status)
		r.follow(spec, status, named(before, status.Name, nameOf))
		kept = append(kept, *status)
	}
	return kept
}

func nameOf(s *v1.ContainerStatus) string { return s.Name }

func named[T any](list []T, name string, of func(*T) string) *T {
	for i := range list {
		if of(&list[i]) == name {
			return &list[i]
		}
	}
	return nil
}

// single makes a state one of waiting, running and terminated.
func (r *repairing) single(s *v1.ContainerStatus) {
	state := &s.State
	switch {
	case state.Terminated != nil && (state.Running != nil || state.Waiting != nil):
		r.note(BadContainer, s.Name, "container %q was reported in more than one state", s.Name)
		state.Running, state.Waiting = nil, nil
	case state.Running != nil && state.Waiting != nil:
		r.note(BadContainer, s.Name, "container %q was reported in more than one state", s.Name)
		state.Waiting = nil
	}
	s.LastTerminationState = v1.ContainerState{Terminated: s.LastTerminationState.Terminated}
	if s.RestartCount < 0 {
		r.note(Uncounted, s.Name, "container %q was reported with %d restarts", s.Name, s.RestartCount)
		s.RestartCount = 0
	}
	if t := state.Terminated; t != nil && !t.FinishedAt.IsZero() && t.FinishedAt.Before(&t.StartedAt) {
		r.note(TimeBack, s.Name, "container %q was reported to have ended before it started", s.Name)
		t.FinishedAt = t.StartedAt
	}
	if state.Running == nil {
		if s.Ready = false; s.Started != nil {
			s.Started = new(bool)
		}
	} else if s.Started == nil {
		started := true
		s.Started = &started
	}
}

// follow changes a status so that it may follow the previous status.
func (r *repairing) follow(spec *v1.Container, s, before *v1.ContainerStatus) {
	if before == nil {
		return
	}
	if s.RestartCount < before.RestartCount {
		r.note(Uncounted, s.Name, "the restarts of container %q went from %d to %d", s.Name, before.RestartCount, s.RestartCount)
		s.RestartCount = before.RestartCount
	}
	switch {
	case before.State.Terminated != nil:
		r.afterEnd(spec, s, before)
	case before.State.Running != nil:
		r.afterRunning(s, before)
	}
	if s.LastTerminationState.Terminated == nil {
		s.LastTerminationState = *before.LastTerminationState.DeepCopy()
	}
}

func (r *repairing) afterEnd(spec *v1.Container, s, before *v1.ContainerStatus) {
	ended := before.State.Terminated
	if s.State.Terminated != nil && s.RestartCount == before.RestartCount {
		if now := s.State.Terminated; now.ExitCode != ended.ExitCode || !now.FinishedAt.Equal(&ended.FinishedAt) {
			r.note(TimeBack, s.Name, "the end of container %q was reported otherwise before", s.Name)
		}
		s.State = *before.State.DeepCopy()
		return
	}
	if !podstatus.ShouldRestart(r.pod, spec, ended.ExitCode) {
		r.note(BackFromTheDead, s.Name, "container %q had ended for good with exit code %d", s.Name, ended.ExitCode)
		*s = *before.DeepCopy()
		return
	}
	r.restarted(s, before, ended)
}

func (r *repairing) afterRunning(s, before *v1.ContainerStatus) {
	began := before.State.Running.StartedAt
	same := s.RestartCount == before.RestartCount
	switch now := s.State; {
	case now.Running != nil && same && (s.ContainerID == before.ContainerID || s.ContainerID == "" || before.ContainerID == ""):
		if !now.Running.StartedAt.Equal(&began) {
			if !now.Running.StartedAt.IsZero() {
				r.note(TimeBack, s.Name, "the start of container %q was moved", s.Name)
			}
			s.State.Running.StartedAt = began
		}
	case now.Terminated != nil && same:
		if t := s.State.Terminated; t.StartedAt.IsZero() {
			t.StartedAt = began
		} else if !t.FinishedAt.IsZero() && t.FinishedAt.Before(&began) {
			r.note(TimeBack, s.Name, "container %q was reported to have ended before it started", s.Name)
			t.StartedAt, t.FinishedAt = began, r.second()
		}
	case now.Terminated == nil:
		r.restarted(s, before, r.unknownEnd(before, 137))
	}
}

// restarted completes the status of a container that was started again, or waits to be.
func (r *repairing) restarted(s, before *v1.ContainerStatus, ended *v1.ContainerStateTerminated) {
	if s.LastTerminationState.Terminated == nil {
		s.LastTerminationState.Terminated = ended.DeepCopy()
	}
	if s.State.Running != nil && s.RestartCount == before.RestartCount {
		r.note(Uncounted, s.Name, "container %q runs again with %d restarts as before", s.Name, s.RestartCount)
		s.RestartCount++
	}
}

func (r *repairing) second() metav1.Time { return metav1.NewTime(r.now.Truncate(time.Second)) }

// unknownEnd returns the termination of a container whose end was not reported.
func (r *repairing) unknownEnd(s *v1.ContainerStatus, code int32) *v1.ContainerStateTerminated {
	end := &v1.ContainerStateTerminated{ExitCode: code, ContainerID: s.ContainerID, FinishedAt: r.second()}
	if s.State.Running != nil {
		end.StartedAt = s.State.Running.StartedAt
	}
	if end.Reason = "Completed"; code != 0 {
		end.Reason = "ContainerStatusUnknown"
		end.Message = "The provider did not report how the container ended"
	}
	return end
}

func (r *repairing) addresses(s *v1.PodStatus) {
	ips := s.PodIPs[:0]
	for _, ip := range s.PodIPs {
		if ip.IP != "" {
			ips = append(ips, ip)
		}
	}
	s.PodIPs = ips
	hosts := s.HostIPs[:0]
	for _, ip := range s.HostIPs {
		if ip.IP != "" {
			hosts = append(hosts, ip)
		}
	}
	s.HostIPs = hosts
}

// running sets running containers for a pod that is Running without any container status, now or before.
func (r *repairing) running(s *v1.PodStatus) {
	if s.Phase != v1.PodRunning || len(s.ContainerStatuses) > 0 || len(r.old.ContainerStatuses) > 0 && ran(r.old) {
		return
	}
	r.note(NoContainers, "", "the pod was reported Running without its containers, which are taken to run")
	for i := range r.pod.Spec.Containers {
		c := &r.pod.Spec.Containers[i]
		started, began := true, r.second()
		if s.StartTime != nil {
			began = *s.StartTime
		}
		container := v1.ContainerStatus{Name: c.Name, Image: c.Image}
		if before := named(r.old.ContainerStatuses, c.Name, nameOf); before != nil {
			container = *before.DeepCopy()
		}
		container.Ready, container.Started = r.ready == nil || *r.ready, &started
		container.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: began}}
		s.ContainerStatuses = append(s.ContainerStatuses, container)
	}
}

// ran reports whether a container of the pod runs or has run.
func ran(s *v1.PodStatus) bool {
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil || list[i].State.Terminated != nil || list[i].LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return s.Phase == v1.PodRunning || podstatus.IsTerminal(s.Phase)
}

// phase decides the phase, and ends the containers of a pod that has ended.
func (r *repairing) phase(s *v1.PodStatus) {
	switch s.Phase {
	case v1.PodSucceeded, v1.PodFailed:
		r.end(s)
		return
	case v1.PodPending, v1.PodRunning:
	default:
		if s.Phase != "" {
			r.note(PhaseUnknown, "", "phase %q says nothing; the containers decide", s.Phase)
		}
		s.Phase = ""
	}
	whole := podstatus.Complete(r.pod, v1.PodStatus{InitContainerStatuses: s.InitContainerStatuses, ContainerStatuses: s.ContainerStatuses}, *r.old, r.now)
	switch {
	case podstatus.IsTerminal(whole.Phase):
		if s.Phase != "" {
			r.note(PhaseLate, "", "all containers have ended, and the pod was reported %s", s.Phase)
		}
		s.Phase = whole.Phase
	case r.old.Phase == v1.PodRunning && s.Phase == v1.PodPending:
		r.note(PhaseBack, "", "the pod was Running and was reported Pending")
		s.Phase = v1.PodRunning
	case s.Phase == "" && r.old.Phase == v1.PodRunning:
		s.Phase = v1.PodRunning
	case s.Phase == "", s.Phase == v1.PodPending && whole.Phase == v1.PodRunning:
		s.Phase = whole.Phase
	}
}

// end terminates the running containers of a pod that has ended, including containers missing in
// the report.
func (r *repairing) end(s *v1.PodStatus) {
	code := int32(0)
	if s.Phase == v1.PodFailed {
		code = 137
	}
	for _, list := range []struct{ now, before *[]v1.ContainerStatus }{
		{&s.InitContainerStatuses, &r.old.InitContainerStatuses}, {&s.ContainerStatuses, &r.old.ContainerStatuses},
	} {
		for i := range *list.before {
			if before := (*list.before)[i]; before.State.Running != nil && named(*list.now, before.Name, nameOf) == nil {
				*list.now = append(*list.now, *before.DeepCopy())
			}
		}
		for i := range *list.now {
			c := &(*list.now)[i]
			if c.State.Running == nil && (c.State.Terminated != nil || s.Phase == v1.PodFailed) {
				continue
			}
			if c.State.Running != nil {
				r.note(EndedWhileRunning, c.Name, "the pod has ended as %s, and container %q was reported running", s.Phase, c.Name)
			}
			c.State = v1.ContainerState{Terminated: r.unknownEnd(c, code)}
			c.Ready, c.Started = false, new(bool)
		}
	}
}

// readiness makes containers and the Ready condition consistent. Lost readiness takes effect at
// once.
func (r *repairing) readiness(s *v1.PodStatus) {
	if r.ready == nil || s.Phase != v1.PodRunning {
		return
	}
	running, ready := 0, 0
	for i := range s.ContainerStatuses {
		if s.ContainerStatuses[i].State.Running != nil {
			running++
		}
		if s.ContainerStatuses[i].Ready {
			ready++
		}
	}
	all := running == len(r.pod.Spec.Containers)
	if all && (*r.ready && ready == 0 || !*r.ready && ready == running) && len(r.pod.Spec.ReadinessGates) == 0 {
		r.note(Readiness, "", "the pod was reported with Ready %t and %d of %d containers ready", *r.ready, ready, running)
		for i := range s.ContainerStatuses {
			s.ContainerStatuses[i].Ready = *r.ready
		}
	}
}

// start keeps the start of the pod.
func (r *repairing) start(s *v1.PodStatus) {
	if r.old.StartTime == nil {
		if s.StartTime != nil && s.StartTime.After(r.now) {
			r.note(TimeBack, "", "the start of the pod lies ahead")
			start := r.second()
			s.StartTime = &start
		}
		return
	}
	if s.StartTime != nil && !s.StartTime.Equal(r.old.StartTime) {
		r.note(TimeBack, "", "the start of the pod was moved")
	}
	s.StartTime = r.old.StartTime
}

// lost is the status of a pod that has run and that the provider no longer has.
func lost(pod *v1.Pod, previous v1.PodStatus, now time.Time) (v1.PodStatus, []Repaired) {
	status, _ := Repair(pod, v1.PodStatus{
		Phase: v1.PodFailed, Reason: "NotFound", Message: "The provider no longer has the pod",
		InitContainerStatuses: previous.InitContainerStatuses, ContainerStatuses: previous.ContainerStatuses,
	}, previous, now)
	return status, []Repaired{{Kind: Vanished, Text: "the provider no longer has a pod that had run; it is not created a second time"}}
}
