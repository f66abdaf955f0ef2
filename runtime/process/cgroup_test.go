package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// testGroups makes a control group in each hierarchy where this test may make one, with at
// most 32 MiB of memory.
func testGroups(t *testing.T) []string {
	t.Helper()
	var made []string
	for _, parent := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"} {
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
			continue
		}
		dir := filepath.Join(parent, fmt.Sprintf("statusd-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		made = append(made, dir)
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			_ = os.WriteFile(filepath.Join(dir, file), []byte("33554432"), 0) // where there is such a file
		}
	}
	t.Cleanup(func() {
		killErr, err := cgroup.Kill(made, time.Minute, nil), cgroup.Remove(made)
		for errors.Is(err, syscall.EBUSY) { // a thread that has done with its group needs time to end
			err = cgroup.Remove(made)
		}
		if err := errors.Join(killErr, err); err != nil {
			t.Error(err)
		}
	})
	return made
}

// startIn starts the container of a pod in control groups.
func (h *host) startIn(t *testing.T, pod *v1.Pod, groups []string) string {
	t.Helper()
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	p := h.pods[pod.UID]
	c, err := h.prepare(t.Context(), p, pod, &pod.Spec.Containers[0], 0)
	if err == nil {
		c.spec.Cgroup = groups
		err = record.WriteDurably(c.dir.Spec(), c.spec)
	}
	if err == nil {
		err = h.launch(t.Context(), p, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.spec.ID
}

// awaitNoThread waits until no thread of a process is in a group of version 1. Those that have
// started something there are about to end.
func awaitNoThread(t *testing.T, dir string, pid int) {
	t.Helper()
	for inside := true; inside; {
		tasks, err := os.ReadFile(filepath.Join(dir, "tasks"))
		if errors.Is(err, os.ErrNotExist) {
			return // of version 2, where threads have no groups
		}
		threads, listErr := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err := errors.Join(err, listErr); err != nil {
			t.Fatal(err)
		}
		inside = slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
			return strings.Contains("\n"+string(tasks), "\n"+thread.Name()+"\n")
		})
	}
}

// expectRemoved waits for nothing: groups of an exited container are removed before its end
// is seen, or soon after by the runtime.
func expectRemoved(t *testing.T, groups []string) {
	t.Helper()
	for _, dir := range groups {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("control group %s: got %v, want it removed", dir, err)
		}
	}
}

func TestAContainerLivesInItsControlGroups(t *testing.T) {
	h := newHost(t)
	h.open(t)
	dirs := testGroups(t)
	// The daemon has left parent, session and environment.
	id := h.startIn(t, scriptPod("pod", fmt.Sprintf(
		`(env -i setsid sh -c 'echo $$ > %[1]s; exec sleep 100000' &); echo $$ > %[1]s; while :; do sleep 0.05; done`, h.pipe)), dirs)
	daemon, main := h.hearPID(t), h.hearPID(t) // or the other way round
	for _, dir := range dirs {
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, p := range []int{daemon.PID, main.PID} {
			if err != nil || !strings.Contains("\n"+string(procs), fmt.Sprintf("\n%d\n", p)) {
				t.Errorf("%s has %q, %v; want process %d in it", dir, procs, err, p)
			}
		}
		shim := h.shimOf(t, "pod", id)
		if strings.Contains("\n"+string(procs), fmt.Sprintf("\n%d\n", shim.PID)) {
			t.Errorf("%s has the shim in it", dir)
		}
		awaitNoThread(t, dir, shim.PID)
	}
	if len(dirs) > 0 { // what is executed inside is inside
		result, err := h.Exec(t.Context(), id, []string{"sh", "-c", "sleep 0.1; cat /proc/self/cgroup"})
		for _, dir := range dirs {
			if err != nil || !strings.Contains(string(result.Output), filepath.Base(dir)) {
				t.Errorf("exec: got %s, %v; want it in %s", result.Output, err, dir)
			}
			awaitNoThread(t, dir, os.Getpid())
		}
	}
	// Without the shim the group still knows who belongs to the container.
	kill(t, h.shimOf(t, "pod", id), syscall.SIGKILL)
	h.awaitExit(t, "pod")
	for _, p := range []proc.ID{daemon, main} {
		if len(dirs) == 0 { // where no group can be made, nothing else can tell whose the daemon is
			if err := p.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			awaitEnd(t, p)
		}
		expectEnded(t, "a process of the container", p)
	}
	h.close() // waits for the clean-up
	expectRemoved(t, dirs)
	h.open(t)
}

func TestAContainerThatNeedsTooMuchMemoryIsOOMKilled(t *testing.T) {
	h := newHost(t)
	h.open(t)
	dirs := testGroups(t)
	limited := false
	for _, dir := range dirs {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			_, err := os.Stat(filepath.Join(dir, file))
			limited = limited || err == nil
		}
	}
	script := `exec tail /dev/zero`
	if !limited {
		script = `kill -9 $$` // the kernel does not do it here, and then the reason is another one
	}
	h.startIn(t, scriptPod("pod", script), dirs)
	want := map[bool]string{true: runtime.ReasonOOMKilled, false: runtime.ReasonError}[limited]
	if c := h.awaitExit(t, "pod"); c.ExitCode != 137 || c.Reason != want {
		t.Errorf("got %+v, want %s", c, want)
	}
	h.close()
	expectRemoved(t, dirs)
	h.open(t)
}

// A thread of a process that is in a group of version 1, as one of statusd's is while it
// executes something there, must not cost the process its life.
func TestAProcessOfWhichAThreadIsInTheGroupIsNotKilled(t *testing.T) {
	dirs := testGroups(t)
	joined, done := make(chan error), make(chan struct{})
	go shim.OnOwnThread(func() {
		joined <- cgroup.JoinThread(dirs)
		<-done
	})
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0], killArgument, strings.Join(dirs, ","))
	output, err := command.CombinedOutput() // which would kill this test
	close(done)
	if err != nil {
		t.Errorf("kill: %v, %s", err, output)
	}
}

// killArgument makes the test binary kill what is in control groups, as a shim does.
const killArgument = "process-test-kill"

func killMain(dirs string) int {
	if err := cgroup.Kill(strings.Split(dirs, ","), time.Minute, nil); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// Protection that a service manager gave to statusd is not for containers.
func TestAContainerIsNotProtectedFromTheOOMKiller(t *testing.T) {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if os.WriteFile(file, []byte("-500"), 0) != nil { // not even root may everywhere
		err = os.WriteFile(file, []byte("500"), 0) // which is inherited in the same way
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.WriteFile(file, before, 0); err != nil {
			t.Error(err)
		}
	}()
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", h.trapping()))
	main := h.hearPID(t)
	for who, pid := range map[string]int{"the container": main.PID, "its shim": h.shimOf(t, "pod", id).PID} {
		if got, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)); err != nil || string(got) != "0\n" {
			t.Errorf("%s: got %q, %v; want 0", who, got, err)
		}
	}
}
