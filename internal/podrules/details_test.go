package podrules

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyDetails(t *testing.T) {
	then := metav1.NewTime(time.Unix(1000, 0))
	shown := v1.PodStatus{
		ObservedGeneration: 1, Phase: v1.PodPending, PodIP: "10.0.0.1", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}},
		Conditions: []v1.PodCondition{
			{Type: v1.PodReadyToStartContainers, Status: v1.ConditionFalse, ObservedGeneration: 1, LastTransitionTime: then},
			{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady", ObservedGeneration: 1, LastTransitionTime: then},
			{Type: "example.com/gate", Status: v1.ConditionTrue, LastTransitionTime: then},
		},
		ContainerStatuses: []v1.ContainerStatus{{Name: "main", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}}},
	}
	sandbox := func(s *v1.PodStatus) {
		s.Conditions[0].Status, s.Conditions[0].LastTransitionTime = v1.ConditionTrue, metav1.NewTime(time.Unix(1005, 0))
	}
	generation := func(s *v1.PodStatus) {
		s.ObservedGeneration, s.Conditions[0].ObservedGeneration, s.Conditions[1].ObservedGeneration = 2, 2, 2
	}
	for name, test := range map[string]struct {
		edit              func(*v1.PodStatus)
		alive, inDeletion bool
	}{
		"nothing":              {func(*v1.PodStatus) {}, true, true},
		"sandbox":              {sandbox, true, true},
		"no sandbox condition": {func(s *v1.PodStatus) { s.Conditions = s.Conditions[1:] }, true, true},
		"generation":           {generation, false, true},
		"resources": {func(s *v1.PodStatus) {
			s.Resources, s.AllocatedResources = &v1.ResourceRequirements{}, v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		}, false, true},
		"sandbox and generation":     {func(s *v1.PodStatus) { sandbox(s); generation(s) }, false, true},
		"generation of Ready":        {func(s *v1.PodStatus) { s.Conditions[1].ObservedGeneration = 2 }, false, true},
		"ready":                      {func(s *v1.PodStatus) { s.Conditions[1].Status = v1.ConditionTrue }, false, false},
		"reason of Ready":            {func(s *v1.PodStatus) { s.Conditions[1].Reason = "PodCompleted" }, false, false},
		"another condition":          {func(s *v1.PodStatus) { s.Conditions[1].Type = v1.ContainersReady }, false, false},
		"phase":                      {func(s *v1.PodStatus) { s.Phase = v1.PodRunning }, false, false},
		"message":                    {func(s *v1.PodStatus) { s.Message = "why" }, false, false},
		"address":                    {func(s *v1.PodStatus) { s.PodIP, s.PodIPs = "10.0.0.2", []v1.PodIP{{IP: "10.0.0.2"}} }, false, false},
		"start time":                 {func(s *v1.PodStatus) { s.StartTime = &then }, false, false},
		"container":                  {func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount = 1 }, false, false},
		"sandbox and container":      {func(s *v1.PodStatus) { sandbox(s); s.ContainerStatuses[0].State = v1.ContainerState{} }, false, false},
		"container and a generation": {func(s *v1.PodStatus) { generation(s); s.ContainerStatuses = nil }, false, false},
	} {
		before, desired := shown.DeepCopy(), shown.DeepCopy()
		test.edit(desired)
		after := desired.DeepCopy()
		pod := &v1.Pod{}
		if got := (Ownership{}).OnlyDetails(pod, before, desired); got != test.alive {
			t.Errorf("%s: %v, want %v", name, got, test.alive)
		}
		pod.DeletionTimestamp = &then
		if got := (Ownership{}).OnlyDetails(pod, before, desired); got != test.inDeletion {
			t.Errorf("%s of a pod in deletion: %v, want %v", name, got, test.inDeletion)
		}
		if !Equal(desired, after) || !Equal(before, &shown) {
			t.Errorf("%s: an argument was changed", name)
		}
	}
}
