package podstatus_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// A bridge to a batch system knows of each job when it started and how it ended. That is
// enough for a complete status.
func ExampleGenerate() {
	pod := &v1.Pod{Spec: v1.PodSpec{
		RestartPolicy: v1.RestartPolicyNever,
		Containers:    []v1.Container{{Name: "main", Image: "registry.example/solver:1"}},
	}}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	job := podstatus.Attempt{Container: "main", ID: "batch://4711", State: podstatus.AttemptRunning, StartedAt: start}

	status := podstatus.Generate(pod, podstatus.Facts{
		Attempts: []podstatus.Attempt{job}, Sandbox: true, IPs: []string{"10.1.0.7"},
	}, v1.PodStatus{}, start)
	fmt.Println(status.Phase, podstatus.FindCondition(status.Conditions, v1.PodReady).Status)

	job.State, job.ExitCode, job.FinishedAt = podstatus.AttemptExited, 0, start.Add(time.Hour)
	status = podstatus.Generate(pod, podstatus.Facts{
		Attempts: []podstatus.Attempt{job}, Ended: true,
	}, status, start.Add(time.Hour))
	fmt.Println(status.Phase, status.ContainerStatuses[0].State.Terminated.Reason)
	// Output:
	// Running True
	// Succeeded Completed
}

// An agent that reports only what it knows lets Complete add the rest: without it, the
// conditions that the report lacks would be removed from the API.
func ExampleComplete() {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}, {Name: "helper"}}}}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	known := v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
		{Name: "main", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
	}}
	status := podstatus.Complete(pod, known, v1.PodStatus{}, now)
	for _, c := range status.ContainerStatuses {
		fmt.Println(c.Name, c.Ready)
	}
	ready := podstatus.FindCondition(status.Conditions, v1.PodReady)
	fmt.Println(ready.Status, ready.Message)
	// Output:
	// helper false
	// main true
	// False containers with unready status: [helper]
}
