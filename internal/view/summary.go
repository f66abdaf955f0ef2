package view

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/podstatus"
)

// Summarize makes the row of a pod, and its explanation, with times of day in loc.
func Summarize(p Pod, loc *time.Location) (PodSummary, explain.Explanation) {
	pod, status := p.Facts.Pod, statusOf(p.Facts)
	why := explain.Pod(p.Facts)
	columns := columnsOf(pod, status)
	return PodSummary{
		Namespace:   pod.Namespace,
		Name:        pod.Name,
		UID:         pod.UID,
		Static:      podstatus.IsStatic(pod),
		Created:     created(pod, status),
		Phase:       status.Phase,
		State:       why.State,
		Since:       why.Since,
		Status:      columns.status,
		Ready:       columns.ready,
		Containers:  columns.containers,
		Restarts:    columns.restarts,
		LastRestart: known(columns.lastRestart),
		IP:          status.PodIP,
		Why:         why.Sentence(loc),
		Brief:       why.Brief(),
		Delivery:    freshness(p),
	}, why
}

// created is when a pod was created. A static pod without a mirror has been since it was started.
func created(pod *v1.Pod, status *v1.PodStatus) *time.Time {
	if pod.CreationTimestamp.IsZero() && status.StartTime != nil {
		return known(status.StartTime.Time)
	}
	return known(pod.CreationTimestamp.Time)
}

func freshness(p Pod) Freshness {
	d := p.Facts.Delivery
	if d == nil {
		return Freshness{}
	}
	f := Freshness{Delivery: *d}
	if !d.Since.IsZero() {
		f.LagSeconds = max(0, p.Facts.Now.Sub(d.Since).Seconds())
	}
	return f
}

// Detail makes everything that is shown of a pod.
func Detail(p Pod, records []Record, loc *time.Location) PodDetail {
	summary, why := Summarize(p, loc)
	shown := Redacted(p.Facts.Pod, p.Facts.Status)
	shown.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	d := PodDetail{PodSummary: summary, Explanation: why, ContainerDetails: []ContainerDetail{}, History: records, Pod: &shown, Annotations: p.Facts.Pod.Annotations}
	if d.History == nil {
		d.History = []Record{}
	}
	status := statusOf(p.Facts)
	for i := range p.Facts.Pod.Spec.InitContainers {
		c := &p.Facts.Pod.Spec.InitContainers[i]
		kind := KindInit
		if podstatus.IsSidecar(c) {
			kind = KindSidecar
		}
		d.ContainerDetails = append(d.ContainerDetails, container(p, c, kind, statusNamed(status.InitContainerStatuses, c.Name)))
	}
	for i := range p.Facts.Pod.Spec.Containers {
		c := &p.Facts.Pod.Spec.Containers[i]
		d.ContainerDetails = append(d.ContainerDetails, container(p, c, KindMain, statusNamed(status.ContainerStatuses, c.Name)))
	}
	return d
}

func container(p Pod, spec *v1.Container, kind ContainerKind, s *v1.ContainerStatus) ContainerDetail {
	facts := p.Facts.Containers[spec.Name]
	d := ContainerDetail{Name: spec.Name, Kind: kind, Image: spec.Image, State: ContainerWaiting, NextStart: known(facts.NextStart), Probes: probes(spec, facts)}
	if s == nil {
		return d
	}
	d.Ready, d.Started, d.Restarts = s.Ready, s.Started != nil && *s.Started, s.RestartCount
	if last := s.LastTerminationState.Terminated; last != nil {
		d.ExitCode = &last.ExitCode
	}
	switch {
	case s.State.Running != nil:
		d.State, d.Since = ContainerRunning, known(s.State.Running.StartedAt.Time)
	case s.State.Terminated != nil:
		end := s.State.Terminated
		d.State, d.Since, d.Reason, d.Message, d.ExitCode = ContainerTerminated, known(end.FinishedAt.Time), end.Reason, end.Message, &end.ExitCode
	case s.State.Waiting != nil:
		d.Reason, d.Message = s.State.Waiting.Reason, s.State.Waiting.Message
	}
	return d
}

// probes returns the probes of a container with their results in its current run. A probe without a result is included: it may be
// why there is no current run.
func probes(spec *v1.Container, facts explain.Container) []ProbeDetail {
	var list []ProbeDetail
	add := func(kind ProbeKind, configured *v1.Probe, p *podstatus.Probe) {
		switch {
		case p != nil:
			d := ProbeDetail{Kind: kind, Probe: *p}
			if p.NotBefore.IsZero() {
				ok := p.Failures == 0
				d.OK = &ok
			}
			list = append(list, d)
		case configured != nil:
			list = append(list, ProbeDetail{Kind: kind})
		}
	}
	add(ProbeStartup, spec.StartupProbe, facts.Startup)
	add(ProbeReadiness, spec.ReadinessProbe, facts.Readiness)
	add(ProbeLiveness, spec.LivenessProbe, facts.Liveness)
	return list
}

func statusOf(f explain.Facts) *v1.PodStatus {
	if f.Status != nil {
		return f.Status
	}
	return &f.Pod.Status
}

// known returns nil for a time that is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
