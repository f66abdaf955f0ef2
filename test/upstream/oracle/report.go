package oracle

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// report builds the status that a pod worker would report, the way the kubelet builds it:
// phase and conditions from the containers, and the conditions of others carried along.
// Words of the step then make it odd, see oddities.
func (p *nodePod) report(step Step, apiConditions, resize []v1.PodCondition) v1.PodStatus {
	status := v1.PodStatus{
		QOSClass:                   v1.PodQOSBestEffort,
		HostIP:                     "192.0.2.1",
		HostIPs:                    []v1.HostIP{{IP: "192.0.2.1"}},
		InitContainerStatuses:      p.statuses(initContainer),
		ContainerStatuses:          p.statuses(regularContainer),
		EphemeralContainerStatuses: p.statuses(ephemeralContainer),
	}
	status.Phase = p.phase(step, &status)
	if p.anyRunning() {
		status.PodIP, status.PodIPs = "10.0.0.1", []v1.PodIP{{IP: "10.0.0.1"}}
	}
	for _, c := range apiConditions {
		if !kubetypes.PodConditionByKubelet(c.Type) {
			status.Conditions = append(status.Conditions, c)
		}
	}
	status.Conditions = append(status.Conditions, resize...)
	status.Conditions = append(status.Conditions, p.conditions(step, &status)...)
	p.disrupted = p.disrupted || step.has("disruption")
	if p.disrupted {
		status.Conditions = withCondition(status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet", Message: "evicted"})
	}
	for _, word := range step.Args {
		if edit, ok := oddities[word]; ok {
			edit(p, &status)
		}
	}
	for _, t := range step.values("drop") {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c v1.PodCondition) bool { return string(c.Type) == t })
	}
	p.last = *status.DeepCopy()
	return status
}

// phase is what the containers add up to, and stays terminal once it was, unless the word
// phase=X says otherwise.
func (p *nodePod) phase(step Step, status *v1.PodStatus) v1.PodPhase {
	if forced := step.value("phase"); forced != "" {
		return v1.PodPhase(forced)
	}
	if p.ended != "" {
		return p.ended
	}
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	phase := podstatus.Phase(p.spec, all, !p.mayRun, podstatus.HasInitialized(p.spec, status))
	if podstatus.IsTerminal(phase) {
		p.ended = phase
	}
	return phase
}

// conditions are the conditions that the kubelet itself generates.
func (p *nodePod) conditions(step Step, status *v1.PodStatus) []v1.PodCondition {
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	list := []v1.PodCondition{
		{Type: v1.PodReadyToStartContainers, Status: truth(p.anyRunning()), ObservedGeneration: p.spec.Generation},
		kubestatus.GeneratePodInitializedCondition(p.spec, &p.last, all, status.Phase),
		kubestatus.GeneratePodReadyCondition(p.spec, &p.last, status.Conditions, all, status.Phase),
		kubestatus.GenerateContainersReadyCondition(p.spec, &p.last, all, status.Phase),
		{Type: v1.PodScheduled, Status: v1.ConditionTrue, ObservedGeneration: p.spec.Generation},
	}
	if podrules.CouldRestartAll(p.spec) {
		list = append(list, v1.PodCondition{Type: v1.AllContainersRestarting, Status: truth(step.has("restarting"))})
	}
	return list
}

func truth(is bool) v1.ConditionStatus {
	if is {
		return v1.ConditionTrue
	}
	return v1.ConditionFalse
}

func (p *nodePod) anyRunning() bool {
	return slices.ContainsFunc(p.containers, func(c *container) bool { return c.state.Running != nil })
}

// oddities make a status unlike the usual one. Each word that a report step carries is
// looked up here.
var oddities = map[string]func(*nodePod, *v1.PodStatus){
	// Orders, fractions and duplicates that normalizing and comparing must see through.
	"shuffle": func(_ *nodePod, s *v1.PodStatus) {
		slices.Reverse(s.ContainerStatuses)
		slices.Reverse(s.InitContainerStatuses)
		slices.Reverse(s.EphemeralContainerStatuses)
		slices.Reverse(s.Conditions)
	},
	"probed": func(_ *nodePod, s *v1.PodStatus) {
		for i := range s.Conditions {
			s.Conditions[i].LastProbeTime = now()
			s.Conditions[i].LastTransitionTime = now()
		}
	},
	"duplicate": func(_ *nodePod, s *v1.PodStatus) {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "Duplicate"})
	},
	"started-at": func(_ *nodePod, s *v1.PodStatus) { s.StartTime = new(now()) },

	// Statuses that know less than they should, or more.
	"no-containers": func(_ *nodePod, s *v1.PodStatus) { s.ContainerStatuses = nil },
	"no-init":       func(_ *nodePod, s *v1.PodStatus) { s.InitContainerStatuses = nil },
	"fewer-init": func(_ *nodePod, s *v1.PodStatus) {
		if n := len(s.InitContainerStatuses); n > 0 {
			s.InitContainerStatuses = s.InitContainerStatuses[1:]
		}
	},
	"fewer": func(_ *nodePod, s *v1.PodStatus) {
		if n := len(s.ContainerStatuses); n > 0 {
			s.ContainerStatuses = s.ContainerStatuses[:n-1]
		}
	},
	"stray": func(_ *nodePod, s *v1.PodStatus) {
		s.ContainerStatuses = withStray(s.ContainerStatuses)
	},
	"stray-init": func(_ *nodePod, s *v1.PodStatus) {
		s.InitContainerStatuses = withStray(s.InitContainerStatuses)
	},
	"stateless": func(_ *nodePod, s *v1.PodStatus) {
		if len(s.ContainerStatuses) > 0 {
			s.ContainerStatuses[0].State = v1.ContainerState{}
		}
	},
	"no-conditions": func(_ *nodePod, s *v1.PodStatus) { s.Conditions = nil },
	"no-qos":        func(_ *nodePod, s *v1.PodStatus) { s.QOSClass = "" },
	"no-ip":         func(_ *nodePod, s *v1.PodStatus) { s.PodIP, s.PodIPs = "", nil },

	// Fields that seldom change.
	"two-ips": func(_ *nodePod, s *v1.PodStatus) {
		s.PodIP, s.PodIPs = "10.0.0.2", []v1.PodIP{{IP: "10.0.0.2"}, {IP: "fd00::2"}}
	},
	"swapped-ips": func(_ *nodePod, s *v1.PodStatus) {
		s.PodIP, s.PodIPs = "fd00::2", []v1.PodIP{{IP: "fd00::2"}, {IP: "10.0.0.2"}}
	},
	"resources": func(_ *nodePod, s *v1.PodStatus) {
		for i := range s.ContainerStatuses {
			s.ContainerStatuses[i].AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m")}
			s.ContainerStatuses[i].Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}
		}
	},
	"other-units": func(_ *nodePod, s *v1.PodStatus) {
		for i := range s.ContainerStatuses {
			s.ContainerStatuses[i].AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1.5")}
			s.ContainerStatuses[i].Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1024Mi")}, Limits: v1.ResourceList{}}
		}
	},
	"pod-resources": func(_ *nodePod, s *v1.PodStatus) {
		s.AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
		s.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}
	},
	"counted": onFirst(func(s *v1.ContainerStatus) { s.RestartCount++ }),
	"pulled":  onFirst(func(s *v1.ContainerStatus) { s.ImageID += "-again" }),
	"user": onFirst(func(s *v1.ContainerStatus) {
		s.User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 7, GID: 7, SupplementalGroups: []int64{7}}}
	}),
	"mounted": onFirst(func(s *v1.ContainerStatus) {
		s.VolumeMounts = []v1.VolumeMountStatus{{Name: "data", MountPath: "/data", ReadOnly: true, RecursiveReadOnly: new(v1.RecursiveReadOnlyEnabled)}}
	}),
	"signal": onFirst(func(s *v1.ContainerStatus) { s.StopSignal = new(v1.SIGTERM) }),
	"device": onFirst(func(s *v1.ContainerStatus) {
		s.AllocatedResourcesStatus = []v1.ResourceStatus{{Name: "example.com/gpu", Resources: []v1.ResourceHealth{{ResourceID: "gpu-0", Health: v1.ResourceHealthStatusUnhealthy}}}}
	}),
	"claims": func(_ *nodePod, s *v1.PodStatus) {
		s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "mine"}}
	},
	"sandbox": func(_ *nodePod, s *v1.PodStatus) {
		for i := range s.Conditions {
			if c := &s.Conditions[i]; c.Type == v1.PodReadyToStartContainers {
				c.Status = truth(c.Status != v1.ConditionTrue)
			}
		}
	},
	"resize": func(_ *nodePod, s *v1.PodStatus) { s.Resize = v1.PodResizeStatusDeferred },

	// Conditions.
	"disruption": func(*nodePod, *v1.PodStatus) {}, // said in this report and in all that follow
	"foreign": func(_ *nodePod, s *v1.PodStatus) {
		s.Conditions = withCondition(s.Conditions, v1.PodCondition{Type: foreignType, Status: v1.ConditionUnknown, Reason: "FromTheNode"})
	},
	"evicted": func(_ *nodePod, s *v1.PodStatus) { s.Reason, s.Message = "Evicted", "the node was low on memory" },
	"ready": func(p *nodePod, s *v1.PodStatus) {
		for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
			s.Conditions = withCondition(s.Conditions, v1.PodCondition{Type: t, Status: v1.ConditionTrue, ObservedGeneration: p.spec.Generation})
		}
	},
}

// onFirst changes the first regular container that has a status.
func onFirst(change func(*v1.ContainerStatus)) func(*nodePod, *v1.PodStatus) {
	return func(_ *nodePod, s *v1.PodStatus) {
		if len(s.ContainerStatuses) > 0 {
			change(&s.ContainerStatuses[0])
		}
	}
}

// withCondition returns the list with the condition in place of the first of its type, or
// at the end.
func withCondition(list []v1.PodCondition, c v1.PodCondition) []v1.PodCondition {
	for i := range list {
		if list[i].Type == c.Type {
			list[i] = c
			return list
		}
	}
	return append(list, c)
}

// stamped sets the transition time to now, in whole seconds, as a writer through the API does.
func stamped(c v1.PodCondition) v1.PodCondition {
	at := now()
	c.LastTransitionTime = at.Rfc3339Copy()
	return c
}

// withStray adds the status of a container that the spec does not have, once: a report that
// names a container twice is refused by statusd (U6).
func withStray(list []v1.ContainerStatus) []v1.ContainerStatus {
	const name = "a-stray"
	if slices.ContainsFunc(list, func(s v1.ContainerStatus) bool { return s.Name == name }) {
		return list
	}
	return append(list, v1.ContainerStatus{Name: name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}})
}
