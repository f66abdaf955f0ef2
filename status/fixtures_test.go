package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

func newPod(name string, edits ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), Generation: 1},
		Spec: v1.PodSpec{
			NodeName:      "node",
			RestartPolicy: v1.RestartPolicyAlways,
			Containers:    []v1.Container{{Name: "main", Image: "host"}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func restartNever(pod *v1.Pod) { pod.Spec.RestartPolicy = v1.RestartPolicyNever }

func deleting(pod *v1.Pod) {
	now := metav1.Now()
	grace := int64(30)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
}

// running is the status of a pod whose one container runs and is ready or not.
func running(pod *v1.Pod, ready bool) v1.PodStatus {
	started := true
	status := v1.PodStatus{
		Phase: v1.PodRunning,
		PodIP: "10.0.0.1", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}},
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", Image: "host", ContainerID: "process://" + string(pod.UID), Ready: ready, Started: &started,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(1000, 0))}},
		}},
	}
	return withConditions(pod, status)
}

// ended is the status of a pod whose one container has ended.
func ended(pod *v1.Pod, exitCode int32) v1.PodStatus {
	status := v1.PodStatus{
		Phase: v1.PodSucceeded,
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", Image: "host", ContainerID: "process://" + string(pod.UID),
			State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: exitCode, Reason: "Completed", ContainerID: "process://" + string(pod.UID)}},
		}},
	}
	if exitCode != 0 {
		status.Phase = v1.PodFailed
		status.ContainerStatuses[0].State.Terminated.Reason = "Error"
	}
	return withConditions(pod, status)
}

func withConditions(pod *v1.Pod, status v1.PodStatus) v1.PodStatus {
	status.Conditions = []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.PodInitialized, Status: v1.ConditionTrue},
		podstatus.ContainersReady(pod, status.ContainerStatuses, status.Phase),
		podstatus.Ready(pod, nil, status.ContainerStatuses, status.Phase),
	}
	return status
}

var podResource = schema.GroupResource{Resource: "pods"}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
