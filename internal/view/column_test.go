package view

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The columns are the columns of kubectl get pods.
func TestColumns_EqualKubectls(t *testing.T) {
	waiting := func(reason string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
	ended := func(code, signal int32, reason string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Signal: signal, Reason: reason}}
	}
	runs := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	always, yes := v1.ContainerRestartPolicyAlways, true
	main := func(name string, state v1.ContainerState, ready bool, restarts int32) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name})
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: name, State: state, Ready: ready, RestartCount: restarts})
		}
	}
	first := func(name string, state v1.ContainerState, restarts int32) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: name})
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, v1.ContainerStatus{Name: name, State: state, RestartCount: restarts})
		}
	}
	sidecar := func(ready bool) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: "sidecar", RestartPolicy: &always})
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, v1.ContainerStatus{Name: "sidecar", State: runs, Started: &yes, Ready: ready, RestartCount: 2})
		}
	}
	deleted := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	reason := func(text string) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Reason = text } }
	condition := func(kind v1.PodConditionType, status v1.ConditionStatus, reason string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: kind, Status: status, Reason: reason})
		}
	}
	for name, c := range map[string]struct {
		phase    v1.PodPhase
		make     []func(*v1.Pod)
		status   string
		ready    int
		of       int
		restarts int32
	}{
		"running":            {v1.PodRunning, []func(*v1.Pod){main("a", runs, true, 0), main("b", runs, false, 3)}, "Running", 1, 2, 3},
		"crash loop":         {v1.PodRunning, []func(*v1.Pod){main("a", waiting("CrashLoopBackOff"), false, 5)}, "CrashLoopBackOff", 0, 1, 5},
		"the first is shown": {v1.PodRunning, []func(*v1.Pod){main("a", ended(1, 0, "Error"), false, 0), main("b", waiting("ImagePullBackOff"), false, 0)}, "Error", 0, 2, 0},
		"one has completed":  {v1.PodRunning, []func(*v1.Pod){main("a", ended(0, 0, "Completed"), false, 0), main("b", runs, true, 0), condition(v1.PodReady, v1.ConditionFalse, "")}, "NotReady", 1, 2, 0},
		"completed, ready":   {v1.PodRunning, []func(*v1.Pod){main("a", ended(0, 0, "Completed"), false, 0), main("b", runs, true, 0), condition(v1.PodReady, v1.ConditionTrue, "")}, "Running", 1, 2, 0},
		"no reason":          {v1.PodFailed, []func(*v1.Pod){main("a", ended(4, 0, ""), false, 0)}, "ExitCode:4", 0, 1, 0},
		"a signal":           {v1.PodFailed, []func(*v1.Pod){main("a", ended(137, 9, ""), false, 0)}, "Signal:9", 0, 1, 0},
		"evicted":            {v1.PodFailed, []func(*v1.Pod){reason("Evicted")}, "Evicted", 0, 0, 0},
		"first of two inits": {v1.PodPending, []func(*v1.Pod){first("i", runs, 1), first("j", waiting("PodInitializing"), 0), main("a", waiting("PodInitializing"), false, 0)}, "Init:0/2", 0, 1, 1},
		"init fails":         {v1.PodPending, []func(*v1.Pod){first("i", ended(1, 0, "Error"), 0), main("a", waiting("PodInitializing"), false, 0)}, "Init:Error", 0, 1, 0},
		"init signal":        {v1.PodPending, []func(*v1.Pod){first("i", ended(137, 9, ""), 0)}, "Init:Signal:9", 0, 0, 0},
		"init loops":         {v1.PodPending, []func(*v1.Pod){first("i", waiting("CrashLoopBackOff"), 7)}, "Init:CrashLoopBackOff", 0, 0, 7},
		"init is done":       {v1.PodRunning, []func(*v1.Pod){first("i", ended(0, 0, "Completed"), 7), main("a", runs, true, 1)}, "Running", 1, 1, 1},
		"sidecar":            {v1.PodRunning, []func(*v1.Pod){sidecar(true), main("a", runs, true, 1)}, "Running", 2, 2, 3},
		"gated":              {v1.PodPending, []func(*v1.Pod){condition(v1.PodScheduled, v1.ConditionFalse, v1.PodReasonSchedulingGated)}, "SchedulingGated", 0, 0, 0},
		"deleted":            {v1.PodRunning, []func(*v1.Pod){main("a", runs, true, 0), deleted}, "Terminating", 1, 1, 0},
		"deleted, ended":     {v1.PodSucceeded, []func(*v1.Pod){main("a", ended(0, 0, "Completed"), false, 0), deleted}, "Completed", 0, 1, 0},
		"deleted, lost":      {v1.PodRunning, []func(*v1.Pod){reason("NodeLost"), deleted}, "Unknown", 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Status: v1.PodStatus{Phase: c.phase}}
			for _, change := range c.make {
				change(pod)
			}
			got := columnsOf(pod, &pod.Status)
			if got.status != c.status || got.ready != c.ready || got.containers != c.of || got.restarts != c.restarts {
				t.Errorf("got %+v, want %s %d/%d, %d restarts", got, c.status, c.ready, c.of, c.restarts)
			}
		})
	}
}
