package journaltest

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// The samples are functions of a number: equal numbers give equal values, different ones
// values that differ in every part.

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(n int) metav1.Time { return metav1.NewTime(epoch.Add(time.Duration(n) * time.Minute)) }

// UID returns the UID of the nth pod.
func UID(n int) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", n))
}

// Resources returns requests and limits.
func Resources(n int) v1.ResourceRequirements {
	return v1.ResourceRequirements{
		Requests: v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(int64(100+n), resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(int64(n+1)<<20, resource.BinarySI),
		},
		Limits: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(200+n), resource.DecimalSI)},
	}
}

// Allocation returns the allocation of a pod with the containers app and sidecar.
func Allocation(n int) podstatus.Allocation {
	podLevel := Resources(n + 2)
	return podstatus.Allocation{
		Containers: map[string]v1.ResourceRequirements{"app": Resources(n), "sidecar": Resources(n + 1)},
		PodLevel:   &podLevel,
	}
}

// Conditions returns a pending and a running resize.
func Conditions(n int) podstatus.ResizeConditions {
	return podstatus.ResizeConditions{
		Pending: &v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue,
			Reason: v1.PodReasonDeferred, Message: fmt.Sprint("waits for ", n), ObservedGeneration: int64(n), LastTransitionTime: at(n)},
		InProgress: &v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue,
			ObservedGeneration: int64(n + 1), LastTransitionTime: at(n + 1)},
	}
}

// Ended returns how a container ended.
func Ended(n int) v1.ContainerStateTerminated {
	return v1.ContainerStateTerminated{ExitCode: int32(n), Signal: int32(n % 32), Reason: "Error",
		Message: fmt.Sprint("line ", n), StartedAt: at(n), FinishedAt: at(n + 1), ContainerID: ContainerID(n)}
}

// ContainerID returns the ID of the nth container.
func ContainerID(n int) string { return fmt.Sprintf("containerd://%064x", n) }

// Final returns the final status of a failed pod.
func Final(n int) podstatus.Final {
	ended := Ended(n)
	return podstatus.Final{
		Namespace: "default", Name: fmt.Sprint("pod-", n), Version: uint64(n + 1), Finished: n%2 == 0, Vanished: n%2 == 1,
		Status: v1.PodStatus{
			Phase: v1.PodFailed, Reason: "Error", Message: fmt.Sprint("failed ", n),
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: at(n)}},
			ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: ContainerID(n),
				State: v1.ContainerState{Terminated: &ended}}},
		},
	}
}
