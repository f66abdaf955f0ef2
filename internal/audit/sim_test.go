package audit_test

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// epoch is when all simulated nodes start.
var epoch = time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)

// moment is the truth about a pod from an instant on.
type moment struct {
	at       time.Duration
	inAPI    bool
	admitted bool // the kubelet has it
	dir      bool
	sandbox  bool
	deleted  *metav1.Time
	ended    bool
	evicted  bool
	crashed  []string // wait in back-off
	attempts []audit.Container
}

// simPod is a pod and its life. Each side sees the moments in order, each with a lag.
type simPod struct {
	pod     *v1.Pod // as the node has it
	mirror  *v1.Pod // its mirror, for a static pod
	moments []moment
	// toKubelet and toAPI are when what the kubelet reports of a moment is known there.
	toKubelet, toAPI []time.Duration
	statuses         []v1.PodStatus
	// blocked are moments that the kubelet reports only with a later one, since it is busy with the pod.
	blocked map[int]int
	// frozen: from then on the side learns nothing more of the pod.
	kubeletFrozen, apiFrozen time.Duration
	// lies are applied to the copy of a side.
	lieAPI     func(time.Duration, *v1.Pod)
	lieRuntime func(time.Duration, []audit.Container) []audit.Container
}

const never = time.Duration(1<<62 - 1)

func (s *simPod) copyMoment() moment {
	m := s.moments[len(s.moments)-1]
	m.attempts = slices.Clone(m.attempts)
	m.crashed = slices.Clone(m.crashed)
	return m
}

// then adds a moment after a while, changed as asked for.
func (s *simPod) then(after time.Duration, change func(*moment)) {
	m := s.copyMoment()
	m.at += after
	change(&m)
	s.moments = append(s.moments, m)
}

func at(d time.Duration) time.Time { return epoch.Add(d) }

// container adds a start of a container.
func (s *simPod) starts(after time.Duration, name string) {
	s.then(after, func(m *moment) {
		attempt := uint32(0)
		for _, c := range m.attempts {
			if c.Name == name {
				attempt = max(attempt, c.Attempt+1)
			}
		}
		m.crashed = slices.DeleteFunc(m.crashed, func(n string) bool { return n == name })
		m.attempts = append(m.attempts, audit.Container{
			ID: fmt.Sprintf("%s-%s-%d", s.pod.UID, name, attempt), SandboxID: string(s.pod.UID) + "-sandbox", UID: s.pod.UID,
			Namespace: s.pod.Namespace, PodName: s.pod.Name, Name: name, Attempt: attempt,
			State: audit.ContainerRunning, Created: at(m.at), Started: at(m.at),
		})
	})
}

// exits ends the newest attempt of a container.
func (s *simPod) exits(after time.Duration, name string, code int32) {
	s.then(after, func(m *moment) {
		for i := len(m.attempts) - 1; i >= 0; i-- {
			if c := &m.attempts[i]; c.Name == name && c.State == audit.ContainerRunning {
				c.State, c.Finished, c.ExitCode = audit.ContainerExited, at(m.at), code
				return
			}
		}
	})
}

// block has the kubelet report the moments from an index on only with the last one.
func (s *simPod) block(from int) {
	if s.blocked == nil {
		s.blocked = map[int]int{}
	}
	for i := from; i < len(s.moments); i++ {
		s.blocked[i] = len(s.moments) - 1
	}
}

// finish computes when each side sees each moment, and what the kubelet reports of it.
func (s *simPod) finish(lagKubelet, lagAPI func() time.Duration) {
	var status v1.PodStatus
	var kubelet, api time.Duration
	for i, m := range s.moments {
		reported := m.at
		if later, ok := s.blocked[i]; ok {
			reported = s.moments[later].at
		}
		kubelet = max(kubelet, reported+lagKubelet())
		api = max(api, kubelet+lagAPI())
		s.toKubelet, s.toAPI = append(s.toKubelet, kubelet), append(s.toAPI, api)
		status = s.report(m, status, at(kubelet))
		s.statuses = append(s.statuses, status)
	}
	s.kubeletFrozen, s.apiFrozen = never, never
}

func (s *simPod) report(m moment, before v1.PodStatus, now time.Time) v1.PodStatus {
	if !m.admitted {
		if before.Phase == "" {
			return v1.PodStatus{Phase: v1.PodPending}
		}
		return before
	}
	facts := podstatus.Facts{Sandbox: m.sandbox, IPs: []string{"10.0.0.7"}, HostIPs: []string{"192.0.2.1"}, Ended: m.ended, Waiting: map[string]v1.ContainerStateWaiting{}}
	if m.evicted {
		facts.Failure = &podstatus.Failure{Reason: "Evicted", Message: "The node was low on resource: memory."}
	}
	for _, name := range m.crashed {
		facts.Waiting[name] = v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	}
	for _, c := range m.attempts {
		a := podstatus.Attempt{Container: c.Name, ID: "containerd://" + c.ID, Number: int(c.Attempt), State: podstatus.AttemptRunning, StartedAt: c.Started}
		if c.State == audit.ContainerExited {
			a.State, a.FinishedAt, a.ExitCode = podstatus.AttemptExited, c.Finished, c.ExitCode
		}
		facts.Attempts = append(facts.Attempts, a)
	}
	status := podstatus.Generate(s.pod, facts, before, now)
	return podrules.Next(s.pod, &before, &status, now)
}

// seen is the index of the last moment that has arrived at now, or -1.
func seen(arrivals []time.Duration, now time.Duration) int {
	i := -1
	for i+1 < len(arrivals) && arrivals[i+1] <= now {
		i++
	}
	return i
}

func (s *simPod) truth(now time.Duration) *moment {
	i := -1
	for i+1 < len(s.moments) && s.moments[i+1].at <= now {
		i++
	}
	if i < 0 {
		return nil
	}
	return &s.moments[i]
}

// simNode is a node: pods, and how its sides see them.
type simNode struct {
	pods       []*simPod
	own        bool          // the kubelet shows its own statuses
	poll       time.Duration // of the kubelet
	lagRuntime time.Duration
	// change is applied to the facts, last.
	change func(now time.Duration, f *audit.Facts)
	// sighted is when a copy of the kubelet's pod was first seen.
	sighted map[types.UID]sighted
}

type sighted struct {
	index int
	at    time.Duration
}

const simName = "n1"

// facts are what the sides know at an instant.
func (n *simNode) facts(now time.Duration) audit.Facts {
	f := audit.Facts{Now: at(now), Node: simName}
	f.APIAnswer = audit.Answer{From: "https://api", At: f.Now, Since: at(-time.Hour)}
	f.RuntimeAnswer = audit.Answer{From: "unix:///run/containerd/containerd.sock", At: at(now.Truncate(time.Second / 2)), Since: at(-time.Hour)}
	f.MachineAnswer = audit.Answer{From: "/var/lib/kubelet", At: at(now.Truncate(time.Second)), Since: at(-time.Hour)}
	polled := now.Truncate(n.poll)
	f.KubeletAnswer = audit.Answer{From: "https://n1:10250/pods", At: at(polled), Since: at(-time.Hour)}
	f.KubeletStatuses = n.own
	f.APIPods, f.KubeletPods = map[types.UID]audit.Sighting{}, map[types.UID]audit.Sighting{}
	f.Sandboxes, f.Containers = map[string]audit.Sandbox{}, map[string]audit.Container{}
	f.PodDirs, f.Cgroups = map[types.UID]audit.PodDir{}, map[types.UID]audit.Cgroup{}
	f.ManifestsKnown, f.ProcessKnown = true, true
	f.Process = &audit.Process{PID: 812, Started: at(-time.Hour)}
	n.node(now, &f)
	for _, s := range n.pods {
		n.project(s, now, polled, &f)
	}
	if n.change != nil {
		n.change(now, &f)
	}
	return f
}

func (n *simNode) node(now time.Duration, f *audit.Facts) {
	f.NodeObject = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: simName}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
	renewed := at(now.Truncate(10 * time.Second))
	seconds := int32(40)
	f.Lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: &seconds}}
	f.LeaseAt, f.NodeAt = renewed, at(-time.Hour)
	f.Clock, f.ClockError, f.ClockAt = 300*time.Millisecond, 20*time.Millisecond, at(now.Truncate(30*time.Second))
}

func (n *simNode) project(s *simPod, now, polled time.Duration, f *audit.Facts) {
	n.projectRuntime(s, now, f)
	truth := s.truth(now)
	if truth == nil {
		return
	}
	if truth.dir {
		f.PodDirs[s.pod.UID] = audit.PodDir{Path: "/var/lib/kubelet/pods/" + string(s.pod.UID), At: f.MachineAnswer.At}
	}
	if s.mirror != nil && truth.inAPI {
		f.Manifests = append(f.Manifests, audit.Manifest{Path: "/etc/kubernetes/manifests/" + s.pod.Name, Namespace: s.pod.Namespace, Name: s.pod.Name})
	}
	n.projectAPI(s, now, f)
	n.projectKubelet(s, polled, f)
}

func (n *simNode) projectRuntime(s *simPod, now time.Duration, f *audit.Facts) {
	m := s.truth(now - n.lagRuntime)
	if m == nil {
		return
	}
	if m.sandbox {
		id := string(s.pod.UID) + "-sandbox"
		f.Sandboxes[id] = audit.Sandbox{ID: id, UID: s.pod.UID, Namespace: s.pod.Namespace, Name: s.pod.Name, Ready: true, Created: epoch, At: f.RuntimeAnswer.At}
	}
	containers := slices.Clone(m.attempts)
	if s.lieRuntime != nil {
		containers = s.lieRuntime(now, containers)
	}
	for _, c := range containers {
		event := c.Started
		if c.State == audit.ContainerExited {
			event = c.Finished
		}
		c.At = event.Add(n.lagRuntime)
		f.Containers[c.ID] = c
	}
}

func (n *simNode) projectAPI(s *simPod, now time.Duration, f *audit.Facts) {
	truth := s.truth(min(now, s.apiFrozen))
	if truth == nil || !truth.inAPI {
		return
	}
	i := seen(s.toAPI, min(now, s.apiFrozen))
	pod := s.pod.DeepCopy()
	if s.mirror != nil {
		pod = s.mirror.DeepCopy()
		if i < 0 {
			return // the kubelet has not created it yet
		}
	}
	pod.ResourceVersion = "1"
	pod.DeletionTimestamp = truth.deleted
	seenAt := truth.at
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
	if i >= 0 {
		pod.Status = s.statuses[i]
		seenAt = max(seenAt, s.toAPI[i])
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
		FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{},"f:containerStatuses":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}`)}}
	if s.lieAPI != nil {
		s.lieAPI(now, pod)
	}
	f.APIPods[pod.UID] = audit.Sighting{Pod: pod, At: at(seenAt)}
}

func (n *simNode) projectKubelet(s *simPod, polled time.Duration, f *audit.Facts) {
	looked := min(polled, s.kubeletFrozen)
	i := seen(s.toKubelet, looked)
	if i < 0 || !s.moments[i].admitted {
		return
	}
	status := s.statuses[i]
	if !n.own && s.mirror == nil { // GET /pods shows what the kubelet has seen of the API
		j := seen(s.toAPI, min(looked, s.apiFrozen))
		if status = (v1.PodStatus{Phase: v1.PodPending}); j >= 0 {
			status = s.statuses[j]
		}
	}
	pod := s.pod.DeepCopy()
	pod.DeletionTimestamp = s.moments[i].deleted
	pod.Status = status
	if s.mirror == nil {
		pod.ResourceVersion = "1"
	}
	if n.sighted == nil {
		n.sighted = map[types.UID]sighted{}
	}
	if got, ok := n.sighted[pod.UID]; !ok || got.index != i {
		n.sighted[pod.UID] = sighted{i, polled}
	}
	f.KubeletPods[pod.UID] = audit.Sighting{Pod: pod, At: at(n.sighted[pod.UID].at)}
}
