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

// A container whose image is pulled, or whose job is queued, waits for the reason that the runtime
// gives. It has not started until the runtime says so: no event, no hook, no second start.
func TestAContainerWaitsForTheReasonOfTheRuntime(t *testing.T) {
	hooked := v1.Container{Name: "main", Image: "web:1", Lifecycle: &v1.Lifecycle{PostStart: execHandler("warm-up")}}
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {
			ImageID: "sha256:abc", Waiting: &runtimefake.Waiting{Reason: runtime.WaitingImagePull, Message: "no such host"},
		}}))
		pod := newPod("web", hooked)
		n.update(pod)
		n.wantState(pod, "main", "the pull fails", "Waiting ErrImagePull")
		if got := n.container(pod, "main"); got.State.Waiting.Message != "no such host" || got.ImageID != "sha256:abc" {
			t.Errorf("got %+v, want the message and the image ID of the runtime", got)
		}
		n.wantPhase(pod, "the pull fails", v1.PodPending)
		id := n.newest(pod, "main").ID
		n.rt.SetWaiting(id, runtime.WaitingImagePullBackOff, "Back-off pulling image")
		n.sleep(time.Hour)
		n.wantState(pod, "main", "an hour later", "Waiting ImagePullBackOff")
		n.wantStarts("an hour later", "main/0")
		if n.events.has("main Started: Container started") || slices.ContainsFunc(n.rt.Calls(), func(call string) bool { return strings.HasPrefix(call, "Exec") }) {
			t.Errorf("before it runs: events %q, calls %q; want no start and no hook", n.events.all, n.rt.Calls())
		}
		n.rt.Begin(id)
		synctest.Wait()
		n.wantState(pod, "main", "it runs", "Running")
		n.wantPhase(pod, "it runs", v1.PodRunning)
		if got := n.container(pod, "main"); got.ImageID != "sha256:abc" || got.Image != "web:1" {
			t.Errorf("got %+v, want image and ID", got)
		}
		if !n.events.has("main Started: Container started") || !slices.Contains(n.rt.Calls(), "Exec "+id+" warm-up") {
			t.Errorf("when it runs: events %q, calls %q; want the start and the hook", n.events.all, n.rt.Calls())
		}
		n.wantStarts("it runs", "main/0")
	})
}

// A pod whose container still waits ends like any other.
func TestAWaitingContainerIsStopped(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Waiting: &runtimefake.Waiting{Reason: "JobQueued"}}}))
		pod := newPod("web")
		n.update(pod)
		n.wantState(pod, "main", "queued", "Waiting JobQueued")
		n.delete(pod, 30)
		n.sleep(time.Minute)
		if c := n.newest(pod, "main"); c.State == runtime.Created || n.events.has("main Started: Container started") {
			t.Errorf("got %+v with events %q, want it stopped and never started", c, n.events.all)
		}
	})
}

// A runtime that pulls inside of StartContainer gives the reason in its error.
func TestAStartErrorIsTheReasonOfTheWait(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {
			StartError: &runtime.StartError{Reason: runtime.WaitingImagePullBackOff, Err: errors.New(`Back-off pulling image "web:1"`)},
		}}))
		pod := newPod("web")
		n.update(pod)
		n.wantState(pod, "main", "the pull fails", "Waiting ImagePullBackOff")
		n.wantPhase(pod, "the pull fails", v1.PodPending)
	})
}

// A process that is started while a container waits runs the hook when the container runs.
func TestANewProcessFollowsAWaitingContainer(t *testing.T) {
	hooked := v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{PostStart: execHandler("warm-up")}}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Waiting: &runtimefake.Waiting{Reason: "JobQueued"}}}))
		pod := newPod("web", hooked)
		n := m.run(t)
		n.workers.SourcesReady()
		n.update(pod)
		n.stop()
		n = m.run(t)
		n.update(pod) // before the sources are ready: a pod that none of them has by then is ended
		n.workers.SourcesReady()
		id := n.newest(pod, "main").ID
		n.rt.Begin(id)
		synctest.Wait()
		if !slices.Contains(n.rt.Calls(), "Exec "+id+" warm-up") {
			t.Errorf("calls %q, want the hook", n.rt.Calls())
		}
		n.wantStarts("once", "main/0")
		n.stop()
	})
}
