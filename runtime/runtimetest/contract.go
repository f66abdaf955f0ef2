package runtimetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// Kind is the behavior of a container in the part of the suite that needs no shell.
type Kind string

const (
	// Succeeds ends by itself with exit code 0.
	Succeeds Kind = "succeeds"
	// Fails ends by itself with exit code 3.
	Fails Kind = "fails"
	// Runs runs until it is stopped.
	Runs Kind = "runs"
	// FailsToStart fails: StartContainer returns a [*runtime.StartError].
	FailsToStart Kind = "fails-to-start"
	// StartsLater is [runtime.Created] when StartContainer returns, begins to run by itself a moment later, and runs until it is stopped.
	StartsLater Kind = "starts-later"
	// NeverStarts is [runtime.Created] until it is stopped.
	NeverStarts Kind = "never-starts"
)

// shells are the kinds as scripts. No shell waits by itself before it starts.
var shells = map[Kind]string{Succeeds: "exit 0", Fails: "exit 3", Runs: "while :; do sleep 0.05; done", FailsToStart: ""}

// podOf makes a pod with a container of each kind, nil if the runtime does not have one of them.
func (f *fixture) podOf(t *testing.T, name string, kinds ...Kind) *v1.Pod {
	pod := f.newPod(name)
	for i, kind := range kinds {
		var container v1.Container
		var ok bool
		if f.config.Script != nil {
			container, ok = f.config.Script(kind)
		} else if _, ok = shells[kind]; ok {
			container = f.newPod(name, shells[kind]).Spec.Containers[0]
			if kind == FailsToStart {
				container.Command = []string{"no-such-command-anywhere"}
			}
		}
		if !ok {
			t.Logf("not implemented: a container that %s", strings.ReplaceAll(string(kind), "-", " "))
			return nil
		}
		container.Name = fmt.Sprintf("c%d", i)
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

// await waits until the watch has said that a container is as wanted.
func (f *fixture) await(t *testing.T, pod *v1.Pod, id string, wanted func(runtime.Container) bool) runtime.Container {
	t.Helper()
	over := timeout(t)
	for {
		c := f.container(t, pod, id)
		if wanted(c) {
			return c
		}
		select {
		case <-f.watch:
		case <-over:
			t.Fatalf("container %s stays as it is: %+v", id, c)
		}
	}
}

func hasExited(c runtime.Container) bool { return c.State == runtime.Exited }
func isRunning(c runtime.Container) bool { return c.State == runtime.Running }

func testExitCode(t *testing.T, f *fixture) {
	for kind, want := range map[Kind]runtime.Container{Succeeds: {Reason: runtime.ReasonCompleted}, Fails: {ExitCode: 3, Reason: runtime.ReasonError}} {
		before := time.Now()
		pod := f.podOf(t, "exit", kind)
		if pod == nil {
			continue
		}
		c := f.run(t, pod)
		if c.ExitCode != want.ExitCode || c.Signal != 0 || c.Reason != want.Reason {
			t.Errorf("a container that %s: got %+v, want exit code %d and reason %s", kind, c, want.ExitCode, want.Reason)
		}
		if c.CreatedAt.Before(before) || c.StartedAt.Before(c.CreatedAt) || c.FinishedAt.Before(c.StartedAt) || c.FinishedAt.After(time.Now()) {
			t.Errorf("times out of order: test %s, created %s, started %s, finished %s", before, c.CreatedAt, c.StartedAt, c.FinishedAt)
		}
		if scheme, _, _ := strings.Cut(f.rt.Version(), "://"); !strings.HasPrefix(c.ID, scheme+"://") {
			t.Errorf("ID %q does not start with the scheme of version %q", c.ID, f.rt.Version())
		}
	}
}

func testEachStartHasItsOwnID(t *testing.T, f *fixture) {
	pod := f.podOf(t, "twice", Fails)
	if pod == nil {
		return
	}
	first := f.run(t, pod)
	id, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1)
	if err != nil {
		t.Fatalf("second attempt: %v", err)
	}
	if id == first.ID {
		t.Errorf("both attempts have ID %s", id)
	}
	if second := f.awaitExit(t, pod, id); second.Attempt != 1 {
		t.Errorf("got attempt %d, want 1", second.Attempt)
	}
}

func testLastTwoAttemptsAreKept(t *testing.T, f *fixture) {
	pod := f.podOf(t, "crash", Fails)
	if pod == nil {
		return
	}
	f.run(t, pod)
	for attempt := 1; attempt <= 3; attempt++ {
		id, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], attempt)
		if err != nil {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
		f.awaitExit(t, pod, id)
	}
	p, err := f.rt.Pod(t.Context(), pod.UID)
	if err != nil || len(p.Containers) < 2 {
		t.Fatalf("got %+v, %v; want at least two attempts", p, err)
	}
	if p.Containers[0].Attempt != 3 || p.Containers[1].Attempt != 2 {
		t.Errorf("got %+v, want attempts 3 and 2 first", p.Containers)
	}
}

func testNoSecondContainerOfAName(t *testing.T, f *fixture) {
	pod := f.podOf(t, "one", Runs)
	if pod == nil {
		return
	}
	id := f.start(t, pod)[0]
	if _, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); !errors.Is(err, runtime.ErrContainerRunning) {
		t.Errorf("start while attempt 0 runs: got %v, want ErrContainerRunning", err)
	}
	f.stop(t, id, 0)
	f.awaitExit(t, pod, id)
	if _, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0); err == nil {
		t.Error("attempt 0 could be started twice")
	}
}

func testUnknown(t *testing.T, f *fixture) {
	pod := f.podOf(t, "unknown", Succeeds)
	if pod == nil {
		return
	}
	const id = "nothing://0"
	if _, err := f.rt.Pod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("Pod: got %v, want ErrNotFound", err)
	}
	if _, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("StartContainer: got %v, want ErrNotFound", err)
	}
	if err := f.rt.StopContainer(t.Context(), id, 0); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("StopContainer: got %v, want ErrNotFound", err)
	}
	if _, err := f.rt.Exec(t.Context(), id, []string{"true"}); !errors.Is(err, runtime.ErrNotFound) && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Exec: got %v, want ErrNotFound", err)
	}
	if _, err := f.rt.Logs(t.Context(), id, runtime.LogOptions{}); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("Logs: got %v, want ErrNotFound", err)
	}
	if err := f.rt.RemovePod(t.Context(), pod.UID); err != nil {
		t.Errorf("RemovePod: got %v, want none", err)
	}
}

func testStartError(t *testing.T, f *fixture) {
	if pod := f.podOf(t, "lost", FailsToStart); pod != nil {
		f.expectStartError(t, pod)
	}
}

func testListsBelongToTheCaller(t *testing.T, f *fixture) {
	pod := f.podOf(t, "mine", Succeeds)
	if pod == nil {
		return
	}
	id := f.run(t, pod).ID
	pod.Name = "changed after the start"
	list, err := f.rt.Pods(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v, %v; want one pod", list, err)
	}
	list[0].Manifest.Name, list[0].Containers[0].Name = "scribbled", "scribbled"
	p, err := f.rt.Pod(t.Context(), pod.UID)
	if err != nil || p.Manifest.Name != "mine" || f.container(t, pod, id).Name != "c0" {
		t.Errorf("got %+v, %v; want it untouched by what callers did to their copies", p, err)
	}
}

func testPodsAreInOrder(t *testing.T, f *fixture) {
	var want []types.UID
	for i := range 5 {
		pod := f.podOf(t, fmt.Sprint("pod-", i), Runs)
		if pod == nil {
			return
		}
		f.start(t, pod)
		want = append(want, pod.UID)
	}
	slices.Sort(want)
	list, err := f.rt.Pods(t.Context())
	var got []types.UID
	for _, pod := range list {
		got = append(got, pod.Manifest.UID)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want the pods in order of their UIDs, %v", got, err, want)
	}
}

func testStopEndsTheContainer(t *testing.T, f *fixture) {
	pod := f.podOf(t, "stopped", Runs, Runs)
	if pod == nil {
		return
	}
	ids := f.start(t, pod)
	f.await(t, pod, ids[0], isRunning)
	f.stop(t, ids[0], 0)
	f.stop(t, ids[0], forever) // extends nothing
	if c := f.awaitExit(t, pod, ids[0]); c.ExitCode == 0 || c.FinishedAt.IsZero() || c.Reason == "" {
		t.Errorf("got %+v, want an exit code that is not 0, a time and a reason", c)
	}
	if c := f.container(t, pod, ids[1]); c.State != runtime.Running {
		t.Errorf("got %+v, want the other container to run on", c)
	}
}

func testStopOfAnExitedContainer(t *testing.T, f *fixture) {
	pod := f.podOf(t, "gone", Fails)
	if pod == nil {
		return
	}
	c := f.run(t, pod)
	f.stop(t, c.ID, 0)
	if again := f.container(t, pod, c.ID); again != c {
		t.Errorf("got %+v after the stop, want it as before: %+v", again, c)
	}
}

func testRemoveNeedsAnEnd(t *testing.T, f *fixture) {
	pod := f.podOf(t, "busy", Runs)
	if pod == nil {
		return
	}
	id := f.start(t, pod)[0]
	f.await(t, pod, id, isRunning)
	if err := f.rt.RemovePod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrContainerRunning) {
		t.Errorf("remove while it runs: got %v, want ErrContainerRunning", err)
	}
	f.stop(t, id, 0)
	f.awaitExit(t, pod, id)
	if err := f.rt.RemovePod(t.Context(), pod.UID); err != nil {
		t.Errorf("remove after the end: %v", err)
	}
	if _, err := f.rt.Pod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("after the removal: got %v, want ErrNotFound", err)
	}
	f.close()
	f.open(t)
	if _, err := f.rt.Pod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("after the removal and a restart: got %v, want ErrNotFound", err)
	}
}
