package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

func withDebugger(pod *v1.Pod) *v1.Pod {
	edited := pod.DeepCopy()
	edited.Generation++
	edited.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
	return edited
}

// kubectl debug adds an ephemeral container, which a kubelet starts once and never again.
func TestEphemeralContainer_RunsOnce(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"debug": {Lives: time.Minute, ExitCode: 3}}))
		pod := newPod("web")
		n.update(pod)
		n.update(withDebugger(pod))
		n.wantStarts("debugged", "main/0", "debug/0")
		if got := n.get(pod).EphemeralContainerStatuses; len(got) != 1 || got[0].State.Running == nil {
			t.Errorf("got %+v, want debug running", got)
		}
		if !n.events.has("debug Started: Container started") {
			t.Errorf("got events %q, want the start of debug", n.events.all)
		}
		n.sleep(time.Hour)
		n.wantStarts("an hour later", "main/0", "debug/0")
		if got := n.get(pod).EphemeralContainerStatuses; len(got) != 1 || got[0].State.Terminated == nil || got[0].State.Terminated.ExitCode != 3 {
			t.Errorf("got %+v, want debug ended with 3", got)
		}
		n.wantPhase(pod, "debug has ended", v1.PodRunning)
	})
}

func TestEphemeralContainer_WaitsWhereTheRuntimeCannotRunIt(t *testing.T) {
	story(t, func(n *node) {
		n.rt.RejectWith(func(*v1.Pod) []runtime.Unsupported {
			return []runtime.Unsupported{{Container: "debug", Field: "spec.ephemeralContainers[0].image", Reason: "must be host"}}
		})
		pod := newPod("web")
		n.update(pod)
		n.update(withDebugger(pod))
		got := n.get(pod).EphemeralContainerStatuses
		if len(got) != 1 || got[0].State.Waiting == nil || got[0].State.Waiting.Message != "spec.ephemeralContainers[0].image: must be host" {
			t.Errorf("got %+v, want debug waiting with the reason", got)
		}
		if want := "debug Failed: Error: spec.ephemeralContainers[0].image: must be host"; !n.events.has(want) {
			t.Errorf("got events %q, want %q", n.events.all, want)
		}
		n.wantPhase(pod, "a container that is refused", v1.PodRunning)
	})
}

// statuses notes each reported status.
type statuses struct {
	worker.Status
	all []v1.PodStatus
}

func (s *statuses) SetPodStatus(pod *v1.Pod, status v1.PodStatus) (bool, error) {
	s.all = append(s.all, status)
	return s.Status.SetPodStatus(pod, status)
}

// sandboxes are what the reported statuses say of the sandbox and of the first container.
func (s *statuses) sandboxes() (all []string) {
	for i := range s.all {
		state := "none"
		if c := podstatus.FindCondition(s.all[i].Conditions, v1.PodReadyToStartContainers); c != nil && c.Status == v1.ConditionTrue {
			state = "sandbox"
		}
		if containers := s.all[i].ContainerStatuses; len(containers) > 0 && containers[0].State.Running != nil {
			state += " running"
		}
		all = append(all, state)
	}
	return slices.Compact(all)
}

// A pod that has its sandbox and no container yet is reported, as by a kubelet.
func TestSandbox_IsReportedBeforeContainers(t *testing.T) {
	seen := &statuses{}
	story(t, func(n *node) {
		n.update(newPod("web"))
		if got, want := seen.sandboxes(), []string{"none", "sandbox", "sandbox running"}; !slices.Equal(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
	}, func(o *worker.Options) { seen.Status, o.Status = o.Status, seen })
}

// late knows pods whose sandboxes have failed a few times.
type late struct {
	*runtimefake.Runtime
	failures int
}

func (l *late) StartPod(ctx context.Context, pod *v1.Pod) error {
	err := l.Runtime.StartPod(ctx, pod)
	if l.failures--; err == nil && l.failures >= 0 {
		return errors.New("no network")
	}
	return err
}

func (l *late) Pod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	found, err := l.Runtime.Pod(ctx, uid)
	found.NoPlace = l.failures >= 0
	return found, err
}

// A runtime may know a pod whose sandbox it could not make.
func TestSandbox_ThatFails_IsNotReported(t *testing.T) {
	seen := &statuses{}
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.sleep(time.Minute)
		if got, want := seen.sandboxes(), []string{"none", "sandbox", "sandbox running"}; !slices.Equal(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
	}, func(o *worker.Options) {
		seen.Status, o.Status = o.Status, seen
		o.Runtime = &late{o.Runtime.(*runtimefake.Runtime), 3}
	})
}
