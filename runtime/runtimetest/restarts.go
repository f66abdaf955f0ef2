package runtimetest

import (
	"testing"

	"github.com/statusd/statusd/runtime"
)

func testRestartAdopts(t *testing.T, f *fixture) {
	pod := f.newPod("survivor", "say ready; hear; exit 6")
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	before := f.container(t, pod, id)
	f.close()
	f.open(t)
	after := f.container(t, pod, id)
	if after.State != runtime.Running || !after.StartedAt.Equal(before.StartedAt) || after.Name != before.Name || after.Attempt != before.Attempt {
		t.Errorf("after the restart: got %+v, want it as before: %+v", after, before)
	}
	p, err := f.rt.Pod(t.Context(), pod.UID)
	if err != nil || p.Manifest.Name != "survivor" || len(p.Manifest.Spec.Containers) != 1 || len(p.IPs) == 0 {
		t.Errorf("after the restart: got pod %+v, %v; want all of it", p, err)
	}
	if got, err := f.rt.Exec(t.Context(), id, []string{"sh", "-c", "exit 4"}); err != nil || got.ExitCode != 4 {
		t.Errorf("exec after the restart: got %+v, %v; want 4", got, err)
	}
	f.tell(t)
	if c := f.awaitExit(t, pod, id); c.ExitCode != 6 {
		t.Errorf("got %+v, want exit code 6", c)
	}
}

func testExitDuringAbsence(t *testing.T, f *fixture) {
	pod := f.newPod("unseen", "say ready; hear; say leaving; exit 3")
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	f.close()
	f.tell(t)
	f.expect(t, "leaving")
	f.open(t)
	if c := f.awaitExit(t, pod, id); c.ExitCode != 3 || c.Reason != runtime.ReasonError || c.FinishedAt.IsZero() {
		t.Errorf("got %+v, want exit code 3", c)
	}
}

func testStopOutlivesTheAgent(t *testing.T, f *fixture) {
	pod := f.newPod("obstinate", obstinate)
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	f.stop(t, id, forever)
	f.expect(t, "asked")
	f.close()
	f.open(t)
	if c := f.container(t, pod, id); c.State != runtime.Running {
		t.Fatalf("after the restart: got %+v, want it in its grace", c)
	}
	f.stop(t, id, 0)
	f.expectKilled(t, pod, id)
}

func testRestartKeepsExits(t *testing.T, f *fixture) {
	pod := f.newPod("done", `printf bye`+toTerminationLog+`; exit 2`)
	before := f.run(t, pod)
	f.close()
	f.open(t)
	after := f.container(t, pod, before.ID)
	if !after.StartedAt.Equal(before.StartedAt) || !after.FinishedAt.Equal(before.FinishedAt) {
		t.Errorf("after the restart: got %+v, want the times of %+v", after, before)
	}
	if after.State != runtime.Exited || after.ExitCode != 2 || after.Message != "bye" || after.Reason != runtime.ReasonError {
		t.Errorf("after the restart: got %+v, want %+v", after, before)
	}
}
