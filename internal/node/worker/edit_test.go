package worker_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

func withImage(pod *v1.Pod, image string) *v1.Pod {
	edited := pod.DeepCopy()
	edited.Spec.Containers[0].Image = image
	edited.Generation++
	return edited
}

func TestAnEditedImageRestartsTheContainer(t *testing.T) {
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			story(t, func(n *node) {
				n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 5 * time.Second, StopExit: &runtimefake.Exit{}}}))
				pod := withPolicy(newPod("web", v1.Container{Name: "main", Image: "nginx:1.28"}), policy)
				n.update(pod)
				n.update(withImage(pod, "nginx:1.29"))
				if c := n.container(pod, "main"); c.Image != "nginx:1.28" || c.ImageID != "nginx:1.28" {
					t.Errorf("while the old one runs: image %s, ID %s, want nginx:1.28", c.Image, c.ImageID)
				}
				if want := "main Killing: Container main definition changed, will be restarted"; !n.events.has(want) {
					t.Errorf("got events %q, want %q", n.events.all, want)
				}
				n.sleep(5 * time.Second)
				n.wantStarts("once the old one has ended", "main/0", "main/1")
				n.wantState(pod, "main", "once the old one has ended", "Running restarts=1 last=0:Completed")
				if c := n.container(pod, "main"); c.Image != "nginx:1.29" {
					t.Errorf("in the end: image %s, want nginx:1.29", c.Image)
				}
				n.sleep(time.Hour)
				n.wantStarts("in the end", "main/0", "main/1")
			})
		})
	}
}

func TestAnEditedImageThatCannotBeRunIsSaid(t *testing.T) {
	story(t, func(n *node) {
		n.rt.RejectWith(func(pod *v1.Pod) []runtime.Unsupported {
			if pod.Spec.Containers[0].Image == "host" {
				return nil
			}
			return []runtime.Unsupported{{Field: "spec.containers[0].image", Reason: "must be host"}}
		})
		pod := newPod("web", v1.Container{Name: "main", Image: "host"})
		n.update(pod)
		n.update(withImage(pod, "nginx"))
		n.wantState(pod, "main", "edited", "Waiting CreateContainerConfigError last=143:Error")
		if got := n.container(pod, "main").State.Waiting.Message; got != "spec.containers[0].image: must be host" {
			t.Errorf("got message %q, want the field", got)
		}
		n.update(withImage(pod, "host")) // mended
		n.sleep(10 * time.Second)
		n.wantState(pod, "main", "mended", "Running restarts=1 last=143:Error")
	})
}

func removals(rt *runtimefake.Runtime) []string {
	return slices.DeleteFunc(rt.Calls(), func(call string) bool { return !strings.HasPrefix(call, "Remove") })
}

func TestTheVolumesOfAFinishedPodGoAtItsEnd(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second}}))
		pod := withPolicy(newPod("job"), v1.RestartPolicyNever)
		n.update(pod)
		if got := removals(n.rt); len(got) > 0 {
			t.Errorf("while it runs: %q", got)
		}
		n.sleep(time.Second)
		n.wantPhase(pod, "in the end", v1.PodSucceeded)
		if got, want := removals(n.rt), []string{"RemoveVolumes job-uid"}; !slices.Equal(got, want) {
			t.Errorf("in the end: got %q, want %q: logs stay", got, want)
		}
		n.remove(pod)
		if got, want := removals(n.rt), []string{"RemoveVolumes job-uid", "RemovePod job-uid"}; !slices.Equal(got, want) {
			t.Errorf("deleted: got %q, want %q", got, want)
		}
	})
}

func TestVolumesThatCannotBeRemovedDoNotHoldThePodBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second}}))
		m.rt.Fail("RemoveVolumes", errors.New("busy"), errors.New("busy"))
		n, pod := m.run(t), withPolicy(newPod("job"), v1.RestartPolicyNever)
		n.update(pod)
		n.sleep(time.Second)
		n.wantPhase(pod, "with volumes that are busy", v1.PodSucceeded)
		if n.workers.CouldHaveRunningContainers(pod) {
			t.Error("the pod is said to have running containers")
		}
		n.sleep(10 * time.Minute)
		if got := removals(n.rt); len(got) != 3 {
			t.Errorf("tried %d times, want until it worked: %q", len(got), got)
		}
		n.stop()
	})
}
