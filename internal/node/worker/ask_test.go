package worker_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/runtimefake"
)

func TestAContainerIsRestartedOnRequestWithGraceAndBackOff(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 5 * time.Second}}))
		pod := newPod("web")
		n.update(pod)
		restart := func(id string) {
			t.Helper()
			if err := n.workers.RestartContainer(pod.UID, "main", id, "rule PodStuck"); err != nil {
				t.Fatal(err)
			}
		}
		first := n.newest(pod, "main")
		restart(first.ID)
		n.sleep(6 * time.Second)
		n.wantStarts("the first time there is no back-off", "main/0", "main/1")
		if want := "main Killing: Container main is stopped: rule PodStuck, will be restarted"; !n.events.has(want) {
			t.Errorf("events: got %q, want %q", n.events.all, want)
		}
		restart(first.ID) // late: it has been replaced
		n.sleep(time.Minute)
		n.wantStarts("a request for a container that was replaced", "main/0", "main/1")
		restart(n.newest(pod, "main").ID)
		n.sleep(6 * time.Second)
		n.wantStarts("within the back-off", "main/0", "main/1")
		n.wantState(pod, "main", "within the back-off", "Waiting CrashLoopBackOff restarts=1 last=143:Error")
		n.sleep(10 * time.Second)
		n.wantStarts("after the back-off", "main/0", "main/1", "main/2")
	})
}

func TestWhatIsNotRestartedOnRequest(t *testing.T) {
	story(t, func(n *node) {
		never, ending := withPolicy(newPod("never"), v1.RestartPolicyNever), newPod("ending")
		n.update(never)
		n.update(ending)
		n.sleep(time.Second)
		n.delete(ending, 30)
		for _, pod := range []*v1.Pod{never, ending, newPod("unknown")} {
			if err := n.workers.RestartContainer(pod.UID, "main", "id", "r"); err == nil {
				t.Errorf("%s: want an error", pod.Name)
			}
		}
		if err := n.workers.RestartContainer(never.UID, "other", "id", "r"); err == nil {
			t.Error("a container that the pod does not have: want an error")
		}
	})
}
