package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilpod "k8s.io/kubernetes/pkg/util/pod"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/test/upstream/podclient"
)

func patchScenarios() []scenario {
	return []scenario{{
		yields:  []yield{{"patch", "ns"}, {"patch_allocs", "allocs"}},
		sides:   managers,
		measure: measurePatch,
	}}
}

// measurePatch builds the patch between two statuses that differ in the readiness of a
// container and in the condition that follows from it.
func measurePatch(ctx context.Context, _ *lab, s side) ([]float64, error) {
	pod := knownPods(1)[0]
	before := twoContainers(pod)
	after := *before.DeepCopy()
	after.ContainerStatuses[1].Ready = false
	after.Conditions[2].Status = v1.ConditionFalse

	if s == statusd {
		if patch, err := podrules.Patch(pod.UID, &before, &after); err != nil || patch == nil {
			return nil, fmt.Errorf("podrules.Patch: %s, %v", patch, err)
		}
		return timed(func() { podrules.Patch(pod.UID, &before, &after) }), nil
	}

	// The kubelet's function builds the patch and sends it, here to an API that answers at once.
	instant := newInstantAPI([]*v1.Pod{pod})
	instant.wants = func(types.UID) *v1.PodStatus { return &after }
	client := podclient.Clientset(instant)
	patch := func() (bool, error) {
		_, _, unchanged, err := utilpod.PatchPodStatus(ctx, client, pod.Namespace, pod.Name, pod.UID, before, after)
		return unchanged, err
	}
	if unchanged, err := patch(); err != nil || unchanged {
		return nil, fmt.Errorf("PatchPodStatus: unchanged %v, %v", unchanged, err)
	}
	return timed(func() { patch() }), nil
}

// twoContainers is the status of a running pod with two containers and five conditions.
func twoContainers(pod *v1.Pod) v1.PodStatus {
	since := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	status := running(pod, true, 1)
	status.Conditions = nil
	for _, kind := range []v1.PodConditionType{
		v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, v1.PodCondition{
			Type: kind, Status: v1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: since,
		})
	}
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("256Mi")}
	main := &status.ContainerStatuses[0]
	main.AllocatedResources = list
	main.Resources = &v1.ResourceRequirements{Limits: list, Requests: list}
	proxy := *main.DeepCopy()
	proxy.Name = "proxy"
	proxy.ContainerID += "-proxy"
	status.ContainerStatuses = append(status.ContainerStatuses, proxy)
	return status
}
