package view

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// reasonNodeLost is the reason of a pod whose node is not heard of.
const reasonNodeLost = "NodeLost"

// columns are what kubectl get pods shows of a pod.
type columns struct {
	status      string
	ready       int
	containers  int
	restarts    int32
	lastRestart time.Time
}

// columnsOf computes the columns READY, STATUS and RESTARTS of kubectl.
func columnsOf(pod *v1.Pod, status *v1.PodStatus) columns {
	c := columns{status: string(status.Phase), containers: len(pod.Spec.Containers)}
	if status.Reason != "" {
		c.status = status.Reason
	}
	if scheduled := podstatus.FindCondition(status.Conditions, v1.PodScheduled); scheduled != nil && scheduled.Reason == v1.PodReasonSchedulingGated {
		c.status = v1.PodReasonSchedulingGated
	}
	initializing := c.initContainers(pod, status)
	if initialized := podstatus.FindCondition(status.Conditions, v1.PodInitialized); !initializing || initialized != nil && initialized.Status == v1.ConditionTrue {
		c.mainContainers(pod, status)
	}
	if pod.DeletionTimestamp != nil {
		switch {
		case status.Reason == reasonNodeLost:
			c.status = string(v1.PodUnknown)
		case status.Phase != v1.PodSucceeded && status.Phase != v1.PodFailed:
			c.status = "Terminating"
		}
	}
	return c
}

// initContainers looks at the init containers up to the first that is at work, and reports whether
// a container is at work. Sidecars count as containers of the pod.
func (c *columns) initContainers(pod *v1.Pod, status *v1.PodStatus) (initializing bool) {
	var ofSidecars int32
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		sidecar := podstatus.IsSidecar(spec)
		if sidecar {
			c.containers++
		}
		s := statusNamed(status.InitContainerStatuses, spec.Name)
		if s == nil {
			continue
		}
		c.restarted(s)
		if sidecar {
			ofSidecars += s.RestartCount
		}
		if initializing {
			continue
		}
		state := s.State
		switch {
		case state.Terminated != nil && state.Terminated.ExitCode == 0:
			continue
		case sidecar && s.Started != nil && *s.Started:
			if s.Ready {
				c.ready++
			}
			continue
		case state.Terminated != nil:
			c.status = "Init:" + endWord(state.Terminated)
		case state.Waiting != nil && state.Waiting.Reason != "" && state.Waiting.Reason != "PodInitializing":
			c.status = "Init:" + state.Waiting.Reason
		default:
			c.status = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		initializing = true
	}
	if !initializing {
		c.restarts = ofSidecars
	}
	return initializing
}

func (c *columns) mainContainers(pod *v1.Pod, status *v1.PodStatus) {
	running := false
	for i := len(pod.Spec.Containers) - 1; i >= 0; i-- { // the first container has the last word
		s := statusNamed(status.ContainerStatuses, pod.Spec.Containers[i].Name)
		if s == nil {
			continue
		}
		c.restarted(s)
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			c.status = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			c.status = endWord(s.State.Terminated)
		case s.Ready && s.State.Running != nil:
			running = true
			c.ready++
		}
	}
	if c.status == "Completed" && running {
		c.status = "NotReady"
		if ready := podstatus.FindCondition(status.Conditions, v1.PodReady); ready != nil && ready.Status == v1.ConditionTrue {
			c.status = "Running"
		}
	}
}

// restarted adds the restarts of a container.
func (c *columns) restarted(s *v1.ContainerStatus) {
	c.restarts += s.RestartCount
	if last := s.LastTerminationState.Terminated; last != nil && last.FinishedAt.After(c.lastRestart) {
		c.lastRestart = last.FinishedAt.Time
	}
}

func endWord(end *v1.ContainerStateTerminated) string {
	switch {
	case end.Reason != "":
		return end.Reason
	case end.Signal != 0:
		return fmt.Sprintf("Signal:%d", end.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", end.ExitCode)
}

func statusNamed(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}
