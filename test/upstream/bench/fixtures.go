package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

const (
	nodeName      = "bench"
	containerName = "main"
	runtimeName   = "containerd"
)

// podOn is a pod of one container, as a client would create it on the node.
func podOn(namespace, name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.PodSpec{
			NodeName:   nodeName,
			Containers: []v1.Container{{Name: containerName, Image: "registry.example/team/main:1.2.3"}},
		},
	}
}

// knownPods are pods as a watch would have delivered them, for scenarios without a server.
func knownPods(n int) []*v1.Pod {
	list := make([]*v1.Pod, n)
	for i := range list {
		pod := podOn("bench", fmt.Sprintf("pod-%06d", i))
		pod.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		pod.ResourceVersion = fmt.Sprint(i + 1)
		pod.Generation = 1
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
		pod.Status = v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}
		list[i] = pod
	}
	return list
}

// containerID is the ID, without the name of the runtime, of the pod's container.
func containerID(uid types.UID) string { return "4f2d9a1be0c7-" + string(uid) }

// running is what a node agent reports of a pod whose container runs: one container and
// four conditions, built again with each call, as an agent does.
func running(pod *v1.Pod, ready bool, restarts int32) v1.PodStatus {
	started := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	// Half of a UID makes an address that differs from pod to pod.
	address := fmt.Sprintf("10.%d.%d.%d", pod.UID[0], pod.UID[len(pod.UID)-2], pod.UID[len(pod.UID)-1])
	status := v1.PodStatus{
		Phase:     v1.PodRunning,
		HostIP:    "192.0.2.1",
		HostIPs:   []v1.HostIP{{IP: "192.0.2.1"}},
		PodIP:     address,
		PodIPs:    []v1.PodIP{{IP: address}},
		QOSClass:  v1.PodQOSBestEffort,
		StartTime: &metav1.Time{Time: started},
		ContainerStatuses: []v1.ContainerStatus{{
			Name: containerName, Ready: ready, Started: new(true), RestartCount: restarts,
			Image:       "registry.example/team/main:1.2.3",
			ImageID:     "registry.example/team/main@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
			ContainerID: runtimeName + "://" + containerID(pod.UID),
			State:       v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}},
		}},
	}
	status.Conditions = conditions(pod, &status)
	return status
}

// ended is what a node agent reports of a pod whose container was asked to stop and did.
func ended(pod *v1.Pod) v1.PodStatus {
	status := running(pod, false, 0)
	status.Phase = v1.PodSucceeded
	container := &status.ContainerStatuses[0]
	container.Started = new(false)
	container.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		Reason: "Completed", ContainerID: container.ContainerID,
		StartedAt: container.State.Running.StartedAt, FinishedAt: metav1.Now(),
	}}
	status.Conditions = conditions(pod, &status)
	return status
}

func conditions(pod *v1.Pod, status *v1.PodStatus) []v1.PodCondition {
	return []v1.PodCondition{
		{Type: v1.PodInitialized, Status: v1.ConditionTrue},
		podstatus.Ready(pod, nil, status.ContainerStatuses, status.Phase),
		podstatus.ContainersReady(pod, status.ContainerStatuses, status.Phase),
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	}
}

func isReady(pod *v1.Pod, want v1.ConditionStatus) bool {
	condition := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
	return condition != nil && condition.Status == want
}
