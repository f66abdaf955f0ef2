package virtualkubelet_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/virtualkubelet"
)

// A bridge to a batch system says that the job is done, and that its container runs.
func ExampleRepair() {
	pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "job"}}}}
	reported := v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{
		{Name: "job", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
	}}
	status, repairs := virtualkubelet.Repair(pod, reported, v1.PodStatus{Phase: v1.PodRunning}, time.Now())
	fmt.Println(status.Phase, status.ContainerStatuses[0].State.Terminated.Reason)
	for _, r := range repairs {
		fmt.Println(r.Kind, "-", r.Text)
	}
	// Output:
	// Succeeded Completed
	// ended-while-running - the pod has ended as Succeeded, and container "job" was reported running
}
