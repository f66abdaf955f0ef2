package runtimetest

import (
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// linger ends by a signal only. A shell that waits in a read can miss one that comes
// just before it; between two short sleeps it cannot.
const linger = `; say ready; while :; do sleep 0.05; done`

// obstinate prints when it is asked to end, and goes on.
const obstinate = `trap 'say asked' TERM` + linger

func (f *fixture) stop(t *testing.T, id string, grace time.Duration) {
	t.Helper()
	if err := f.rt.StopContainer(t.Context(), id, grace); err != nil {
		t.Fatalf("stop: %v", err)
	}
}

func (f *fixture) expectKilled(t *testing.T, pod *v1.Pod, id string) {
	t.Helper()
	if c := f.awaitExit(t, pod, id); c.ExitCode != 137 || c.Signal != int32(syscall.SIGKILL) || c.Reason != runtime.ReasonError {
		t.Errorf("got %+v, want 137 by signal 9", c)
	}
}

func testStopIsObeyed(t *testing.T, f *fixture) {
	pod := f.newPod("polite", "trap 'exit 7' TERM"+linger)
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	f.stop(t, id, forever)
	if c := f.awaitExit(t, pod, id); c.ExitCode != 7 || c.Signal != 0 {
		t.Errorf("got %+v, want the 7 of its handler", c)
	}
}

func testStopSignal(t *testing.T, f *fixture) {
	pod := f.newPod("usr2", "trap 'exit 9' USR2"+linger)
	signal := v1.SIGUSR2
	pod.Spec.OS = &v1.PodOS{Name: v1.Linux}
	pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{StopSignal: &signal}
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	f.stop(t, id, forever)
	if c := f.awaitExit(t, pod, id); c.ExitCode != 9 {
		t.Errorf("got %+v, want the 9 of its handler for SIGUSR2", c)
	}
}

func testStopWithoutGraceKills(t *testing.T, f *fixture) {
	pod := f.newPod("doomed", "trap 'exit 7' TERM"+linger)
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	f.stop(t, id, 0)
	f.expectKilled(t, pod, id)
}

func testKilledAfterGrace(t *testing.T, f *fixture) {
	pod := f.newPod("obstinate", obstinate)
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	begin := time.Now()
	const grace = 200 * time.Millisecond
	f.stop(t, id, grace)
	f.expectKilled(t, pod, id) // on a busy machine before it could say that it was asked to end
	if took := f.container(t, pod, id).FinishedAt.Sub(begin); took < grace {
		t.Errorf("killed after %s, want its grace of %s to be honored", took, grace)
	}
}

func testGraceIsShortened(t *testing.T, f *fixture) {
	pod := f.newPod("obstinate", obstinate)
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	f.stop(t, id, forever)
	f.expect(t, "asked")
	if c := f.container(t, pod, id); c.State != runtime.Running {
		t.Fatalf("got %+v, want it to run through its grace", c)
	}
	f.stop(t, id, 50*time.Millisecond)
	f.expectKilled(t, pod, id)
}

func testGraceIsNotExtended(t *testing.T, f *fixture) {
	pod := f.newPod("obstinate", obstinate)
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	f.stop(t, id, 200*time.Millisecond)
	f.stop(t, id, forever)
	f.expectKilled(t, pod, id)
}

// daemons leaves two processes behind that no process group or session of the container reaches.
const daemons = `
(setsid sh -c 'trap "" TERM HUP; echo daemon > "'"$signal"'/up"; sleep 100000' &)
(sh -c 'trap "" TERM HUP; echo daemon > "'"$signal"'/up"; sleep 100000' &)
hear
`

func testDescendantsEndWithTheContainer(t *testing.T, f *fixture) {
	pod := f.newPod("daemons", daemons+"exit 5")
	id := f.start(t, pod)[0]
	f.expect(t, "daemon")
	f.expect(t, "daemon")
	f.tell(t)
	if c := f.awaitExit(t, pod, id); c.ExitCode != 5 {
		t.Errorf("got %+v, want exit code 5", c)
	}
	f.expectNoProcess(t)
}

func testDescendantsEndWithAKill(t *testing.T, f *fixture) {
	pod := f.newPod("daemons", daemons)
	id := f.start(t, pod)[0]
	f.expect(t, "daemon")
	f.expect(t, "daemon")
	f.stop(t, id, 0)
	f.expectKilled(t, pod, id)
	f.expectNoProcess(t)
}
