package runtimetest

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// startCreated starts a pod of one container, which must be created or, if it may run by itself, be further.
func (f *fixture) startCreated(t *testing.T, name string, kind Kind) (*v1.Pod, string) {
	pod := f.podOf(t, name, kind)
	if pod == nil {
		return nil, ""
	}
	id := f.start(t, pod)[0]
	c := f.container(t, pod, id)
	if c.State != runtime.Created && kind == NeverStarts || c.State == runtime.Exited {
		t.Fatalf("got %+v, want it created", c)
	}
	if c.State == runtime.Created && !c.StartedAt.IsZero() {
		t.Errorf("got %+v, want no start time before it runs", c)
	}
	return pod, id
}

func testCreatedContainerRuns(t *testing.T, f *fixture) {
	pod, id := f.startCreated(t, "later", StartsLater)
	if pod == nil {
		return
	}
	if _, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); !errors.Is(err, runtime.ErrContainerRunning) {
		t.Errorf("start while attempt 0 waits to run: got %v, want ErrContainerRunning", err)
	}
	if c := f.await(t, pod, id, isRunning); c.StartedAt.IsZero() || c.StartedAt.Before(c.CreatedAt) || c.ID != id {
		t.Errorf("got %+v, want a start time after its creation", c)
	}
	f.stop(t, id, 0)
	f.awaitExit(t, pod, id)
}

func testCreatedContainerIsStopped(t *testing.T, f *fixture) {
	pod, id := f.startCreated(t, "waiting", NeverStarts)
	if pod == nil {
		return
	}
	if err := f.rt.RemovePod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrContainerRunning) {
		t.Errorf("remove while it waits to run: got %v, want ErrContainerRunning", err)
	}
	f.stop(t, id, 0)
	if c := f.awaitExit(t, pod, id); !c.StartedAt.IsZero() || c.ExitCode == 0 {
		t.Errorf("got %+v, want an end without a start", c)
	}
}

// A container that is created when the agent dies runs later, or has ended: a pod that waits forever could never be deleted.
func testRestartWhileCreated(t *testing.T, f *fixture) {
	pod, id := f.startCreated(t, "later", StartsLater)
	if pod == nil {
		return
	}
	before := f.container(t, pod, id)
	f.close()
	f.open(t)
	if f.forgot(t, pod) {
		return
	}
	c := f.await(t, pod, id, func(c runtime.Container) bool { return c.State != runtime.Created })
	if c.Attempt != before.Attempt || !c.CreatedAt.Equal(before.CreatedAt) || c.State == runtime.Exited && c.ExitCode == 0 {
		t.Errorf("after the restart: got %+v, want it as before, %+v, and running or failed", c, before)
	}
	f.stop(t, id, 0)
	f.awaitExit(t, pod, id)
}

func testStopOfCreatedAfterRestart(t *testing.T, f *fixture) {
	pod, id := f.startCreated(t, "waiting", NeverStarts)
	if pod == nil {
		return
	}
	f.close()
	f.open(t)
	if f.forgot(t, pod) {
		return
	}
	if c := f.container(t, pod, id); c.State == runtime.Running {
		t.Errorf("after the restart: got %+v, want it to wait as before", c)
	}
	f.stop(t, id, 0)
	if c := f.awaitExit(t, pod, id); !c.StartedAt.IsZero() || c.ExitCode == 0 {
		t.Errorf("got %+v, want an end without a start", c)
	}
	if err := f.rt.RemovePod(t.Context(), pod.UID); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func testRestartWhileRunning(t *testing.T, f *fixture) {
	pod := f.podOf(t, "survivor", Runs)
	if pod == nil {
		return
	}
	id := f.start(t, pod)[0]
	before := f.await(t, pod, id, isRunning)
	f.close()
	f.open(t)
	if f.forgot(t, pod) {
		return
	}
	if after := f.container(t, pod, id); after.State != runtime.Running || !after.StartedAt.Equal(before.StartedAt) || after.Attempt != before.Attempt {
		t.Errorf("after the restart: got %+v, want it as before: %+v", after, before)
	}
	if p, err := f.rt.Pod(t.Context(), pod.UID); err != nil || p.Manifest.Name != "survivor" || len(p.Manifest.Spec.Containers) != 1 {
		t.Errorf("after the restart: got pod %+v, %v; want all of it", p, err)
	}
	f.stop(t, id, 0)
	f.awaitExit(t, pod, id)
}

func testRestartKeepsAnExit(t *testing.T, f *fixture) {
	pod := f.podOf(t, "done", Fails)
	if pod == nil {
		return
	}
	before := f.run(t, pod)
	f.close()
	f.open(t)
	if f.forgot(t, pod) {
		return
	}
	after := f.container(t, pod, before.ID)
	if !after.StartedAt.Equal(before.StartedAt) || !after.FinishedAt.Equal(before.FinishedAt) || after.State != runtime.Exited || after.ExitCode != 3 || after.Reason != before.Reason {
		t.Errorf("after the restart: got %+v, want %+v", after, before)
	}
}

// forgot reports whether the runtime forgets its pods with a restart, and checks that it has.
func (f *fixture) forgot(t *testing.T, pod *v1.Pod) bool {
	t.Helper()
	if f.config.Ephemeral {
		if p, err := f.rt.Pod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("after the restart: got %+v, %v; want ErrNotFound of a runtime that is ephemeral", p, err)
		}
	}
	return f.config.Ephemeral
}
