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
