package history

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestDiff(t *testing.T) {
	waiting := func(reason string) v1.ContainerStatus {
		return v1.ContainerStatus{Name: "db", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: "why"}}}
	}
	running := func(id string, restarts int32) v1.ContainerStatus {
		return v1.ContainerStatus{Name: "db", ContainerID: id, RestartCount: restarts, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	}
	ended := func(c v1.ContainerStatus, code int32) v1.ContainerStatus {
		c.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "out of cheese"}}
		return c
	}
	with := func(c ...v1.ContainerStatus) *v1.PodStatus {
		return &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: c}
	}
	ready := func(status v1.ConditionStatus, reason, message string) *v1.PodStatus {
		return &v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: status, Reason: reason, Message: message}}}
	}
	again := running("2", 1)
	again.LastTerminationState.Terminated = &v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	serving := running("1", 0)
	serving.Ready = true
	for _, c := range []struct {
		name         string
		older, newer *v1.PodStatus
		want         string
	}{
		{"nothing", with(running("1", 0)), with(running("1", 0)), ""},
		{"the phase", &v1.PodStatus{Phase: v1.PodPending}, &v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "memory"}, "Phase : Pending → Failed (Evicted) (memory)"},
		{"a condition is new", &v1.PodStatus{}, ready(v1.ConditionFalse, "NotYet", "waits"), "Condition Ready:  → False (NotYet) (waits)"},
		{"a condition changes", ready(v1.ConditionFalse, "NotYet", ""), ready(v1.ConditionTrue, "", ""), "Condition Ready: False → True"},
		{"a condition has another reason", ready(v1.ConditionFalse, "A", ""), ready(v1.ConditionFalse, "B", ""), "Condition Ready: False → False (B)"},
		{"a condition has another message", ready(v1.ConditionFalse, "A", "x"), ready(v1.ConditionFalse, "A", "y"), ""},
		{"a condition is gone", ready(v1.ConditionTrue, "", ""), &v1.PodStatus{}, "Condition Ready: True → "},
		{"a container is new", with(), with(waiting("ContainerCreating")), "Container db:  → waiting (ContainerCreating) (why)"},
		{"a container runs", with(waiting("ContainerCreating")), with(running("1", 0)), "Container db: waiting → running"},
		{"a container is ready", with(running("1", 0)), with(serving), "Ready db: not ready → ready"},
		{"a container ends", with(running("1", 0)), with(ended(running("1", 0), 3)), "Container db: running → terminated (Error) (exit code 3: out of cheese)"},
		{"an end that was not seen", with(running("1", 0)), with(again), "Restart db: 0 → 1 (OOMKilled) (exit code 137)\nContainer db: running → running"},
		{"a wait for another reason", with(waiting("ErrImagePull")), with(waiting("ImagePullBackOff")), "Container db: waiting → waiting (ImagePullBackOff) (why)"},
		{"a container is gone", with(running("1", 0)), with(), "Container db: running → "},
		{"a container without a state", with(), with(v1.ContainerStatus{Name: "db"}), "Container db:  → waiting"},
	} {
		if got := strings.TrimSuffix(shown(Diff(c.older, c.newer)), "\n"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
