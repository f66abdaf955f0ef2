package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

// hostile is a runtime that breaks its contract where a field says so.
type hostile struct {
	*runtimefake.Runtime
	watch func(ctx context.Context) <-chan types.UID
	check func(pod *v1.Pod) []runtime.Unsupported

	mu     sync.Mutex // guards what follows
	change func(*runtime.Pod)
	extra  []runtime.Pod
}

func (h *hostile) Watch(ctx context.Context) <-chan types.UID {
	if h.watch != nil {
		return h.watch(ctx)
	}
	return h.Runtime.Watch(ctx)
}

func (h *hostile) Check(pod *v1.Pod) []runtime.Unsupported {
	if h.check != nil {
		return h.check(pod)
	}
	return h.Runtime.Check(pod)
}

func (h *hostile) Pod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	found, err := h.Runtime.Pod(ctx, uid)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && h.change != nil {
		h.change(&found)
	}
	return found, err
}

func (h *hostile) Pods(ctx context.Context) ([]runtime.Pod, error) {
	found, err := h.Runtime.Pods(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(found, h.extra...), err
}

func (h *hostile) lie(change func(*runtime.Pod)) {
	h.mu.Lock()
	h.change = change
	h.mu.Unlock()
	for _, uid := range []types.UID{"web-uid", "never-heard-of"} {
		h.Notify(uid)
	}
	synctest.Wait()
}

// against tells a story on a node with a hostile runtime.
func against(t *testing.T, h *hostile, tell func(n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		h.Runtime = m.rt
		n := m.run(t, func(o *worker.Options) { o.Runtime = h })
		n.workers.SourcesReady()
		tell(n)
		n.stop()
	})
}

// A watch that ends by itself is begun again, and what happened meanwhile is seen.
func TestAWatchThatEndsIsBegunAgain(t *testing.T) {
	h := &hostile{}
	watches := 0
	h.watch = func(ctx context.Context) <-chan types.UID {
		watches++
		if watches < 3 {
			closed := make(chan types.UID)
			close(closed)
			return closed
		}
		return h.Runtime.Watch(ctx)
	}
	against(t, h, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.rt.Exit(n.newest(pod, "main").ID, runtimefake.Exit{Code: 3})
		n.sleep(5 * time.Second)
		n.wantState(pod, "main", "after an exit that no watch has told", "Running restarts=1 last=3:Error")
		n.sleep(time.Minute)
		n.rt.Exit(n.newest(pod, "main").ID, runtimefake.Exit{Code: 4})
		synctest.Wait()
		if got := n.container(pod, "main"); got.State.Running != nil {
			t.Errorf("got %+v, want that the end is seen at once", got)
		}
		if watches != 3 {
			t.Errorf("watched %d times, want 3", watches)
		}
	})
}

// A Check that does not return for one pod keeps no other from being admitted.
func TestACheckThatHangsDelaysNoOtherPod(t *testing.T) {
	release := make(chan struct{})
	h := &hostile{check: func(pod *v1.Pod) []runtime.Unsupported {
		if pod.Name == "stuck" {
			<-release
		}
		return nil
	}}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{}) // of the bubble
		m := newMachine()
		h.Runtime = m.rt
		n := m.run(t, func(o *worker.Options) { o.Runtime = h })
		n.workers.SourcesReady()
		n.update(newPod("stuck"))
		web := newPod("web")
		n.update(web)
		n.sleep(time.Minute)
		n.wantPhase(web, "beside a pod that is stuck", v1.PodRunning)
		close(release)
		synctest.Wait()
		n.wantPhase(newPod("stuck"), "released", v1.PodRunning)
		n.stop()
	})
}

// What a runtime lists is taken in any order: an older attempt is not taken for the newest.
func TestAttemptsAreTakenInAnyOrder(t *testing.T) {
	h := &hostile{}
	against(t, h, func(n *node) {
		h.lie(func(p *runtime.Pod) { slices.Reverse(p.Containers) })
		pod := newPod("web", v1.Container{Name: "a"}, v1.Container{Name: "b"})
		n.update(pod)
		n.rt.Exit(n.newest(pod, "a").ID, runtimefake.Exit{Code: 3})
		n.sleep(time.Minute)
		n.wantState(pod, "a", "restarted once", "Running restarts=1 last=3:Error")
		n.wantStarts("a minute later", "a/0", "b/0", "a/1")
	})
}

// A pod without a manifest cannot be ended by anyone; it does not end the node either. One that
// no source knows is ended.
func TestPodsThatTheRuntimeInvents(t *testing.T) {
	h := &hostile{extra: []runtime.Pod{{}, {Manifest: newPod("invented")}}}
	against(t, h, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.sleep(10 * time.Minute)
		n.wantPhase(pod, "beside pods that were not asked for", v1.PodRunning)
		removals := 0
		for _, call := range n.rt.Calls() {
			if call == "RemovePod invented-uid" {
				removals++
			}
		}
		if removals < 2 || removals > 25 { // the runtime lists it again each time
			t.Errorf("removed %d times in ten minutes, want that it is tried again, with a pause", removals)
		}
	})
}

// Whatever the runtime shows of a pod that has failed, the phase stays Failed.
func TestAStateThatGoesBackDoesNotUndoAnEnd(t *testing.T) {
	h := &hostile{}
	against(t, h, func(n *node) {
		pod := withPolicy(newPod("web"), v1.RestartPolicyNever)
		n.update(pod)
		n.rt.Exit(n.newest(pod, "main").ID, runtimefake.Exit{Code: 3})
		synctest.Wait()
		n.wantPhase(pod, "the container has failed", v1.PodFailed)
		for _, state := range []runtime.State{runtime.Running, runtime.Created, "Dreaming"} {
			h.lie(func(p *runtime.Pod) { p.Containers[0].State, p.Containers[0].ID = state, "fake://another" })
			n.sleep(10 * time.Minute)
			n.wantPhase(pod, "shown as "+string(state), v1.PodFailed)
		}
		n.wantStarts("all the time", "main/0")
	})
}

// A container that changes its ID is another one, and is stopped as such when the pod ends.
func TestAContainerThatChangesItsID(t *testing.T) {
	h := &hostile{}
	against(t, h, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		h.lie(func(p *runtime.Pod) { p.Containers[0].ID += "x" })
		n.sleep(time.Minute)
		n.wantState(pod, "main", "with another ID", "Running")
		if got := n.container(pod, "main").ContainerID; got != "fake://1x" {
			t.Errorf("got ID %s, want the one that the runtime shows now", got)
		}
		n.delete(pod, 30)
		n.sleep(time.Minute)
		if !n.workers.CouldHaveRunningContainers(pod) {
			t.Error("the pod counts as stopped, but its container is still shown as running")
		}
		h.lie(nil)
		n.sleep(time.Minute)
		if n.workers.CouldHaveRunningContainers(pod) {
			t.Errorf("the pod does not count as stopped; calls %q", n.rt.Calls())
		}
	})
}

// A runtime that fails in every call is asked again, and the pod runs when it recovers.
func TestARuntimeThatFailsInEveryCall(t *testing.T) {
	down := errors.New("the hypervisor is down")
	h := &hostile{}
	against(t, h, func(n *node) {
		for _, method := range []string{"StartPod", "StartContainer", "Pod", "Pods"} {
			n.rt.Fail(method, slices.Repeat([]error{down}, 20)...)
		}
		pod := newPod("web")
		n.update(pod)
		n.sleep(time.Minute)
		n.wantPhase(pod, "while it fails", v1.PodPending)
		n.sleep(time.Hour)
		n.wantPhase(pod, "when it has recovered", v1.PodRunning)
		n.rt.Fail("StopContainer", slices.Repeat([]error{down}, 5)...)
		n.rt.Fail("RemovePod", slices.Repeat([]error{down}, 5)...)
		n.remove(pod)
		n.sleep(time.Hour)
		if found, err := n.rt.Pods(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("got %v, %v; want nothing left", found, err)
		}
	})
}
