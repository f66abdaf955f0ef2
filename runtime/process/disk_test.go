package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// namespaceVariable is set in a test that runs again where it may mount.
const namespaceVariable = "STATUSD_TEST_NAMESPACE"

// mayMount reports whether the test goes on here. An ordinary user may mount in a user
// namespace only, and there the test runs as a process of its own.
func mayMount(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), namespaceVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("this test mounts file systems, which needs root or user namespaces: %v\n%s", err, output)
	}
	return false
}

// smallDisk mounts a file system of 2 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves no room on a disk, and returns what makes room again.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	path := filepath.Join(disk, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 16; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("fill: %v", err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// makeReadOnly does to a directory what the kernel does to a disk with errors, as far as
// new files are concerned, and returns what takes it back.
func makeReadOnly(t *testing.T, dir string) (undo func()) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	undone := false
	undo = func() {
		if !undone {
			undone = true
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(undo)
	return undo
}

// faults are the disks that take no writes. Each gets the directory of the disk.
var faults = map[string]func(t *testing.T, disk string) (undo func()){"full": fill, "read-only": makeReadOnly}

// trapping ends with code 4 when it is asked to.
func (h *host) trapping() string {
	return fmt.Sprintf(`trap 'exit 4' TERM; echo $$ > %s; while :; do sleep 0.05; done`, h.pipe)
}

// awaitEnd waits until a process has ended.
func awaitEnd(t *testing.T, id proc.ID) {
	t.Helper()
	fd, err := id.Open()
	if errors.Is(err, proc.ErrGone) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		switch _, err := unix.Poll(poll, -1); {
		case err == nil:
			return
		case !errors.Is(err, unix.EINTR): // as the end of any child of this test does
			t.Fatalf("wait for process %d: %v", id.PID, err)
		}
	}
}

// newHostOnSmallDisk is a host whose state is on a disk of its own, which can be filled and frozen.
func newHostOnSmallDisk(t *testing.T) (h *host, disk string) {
	t.Helper()
	disk = smallDisk(t)
	h = newHost(t)
	h.dir = filepath.Join(disk, "state")
	h.open(t)
	return h, disk
}

// Stops, ends and restarts on a disk that takes no writes, and what is known when it takes
// them again.
func TestADiskThatTakesNoWritesStopsNoStop(t *testing.T) {
	if !mayMount(t) {
		return
	}
	for story, fault := range faults {
		t.Run(story, func(t *testing.T) {
			h, disk := newHostOnSmallDisk(t)
			id := h.start(t, scriptPod("pod", h.trapping()))
			main := h.hearPID(t)
			shim := h.shimOf(t, "pod", id)
			undo := fault(t, disk)
			if err := h.StopContainer(t.Context(), id, time.Hour); err != nil {
				t.Fatalf("stop: %v", err)
			}
			if c := h.awaitExit(t, "pod"); c.ExitCode != 4 || c.Reason != runtime.ReasonError || c.StartedAt.IsZero() {
				t.Errorf("got %+v, want exit code 4", c)
			}
			expectEnded(t, "the container", main)
			h.close()
			h.open(t) // another statusd, on the same disk, to which the shim says it when it can
			if c := h.awaitExit(t, "pod"); c.ExitCode != 4 {
				t.Errorf("after a restart of statusd: got %+v, want exit code 4", c)
			}
			undo()
			awaitEnd(t, shim) // which has recorded the exit now
			h.close()
			h.open(t)
			if c := h.only(t, "pod"); c.State != runtime.Exited || c.ExitCode != 4 {
				t.Errorf("when the disk takes writes again: got %+v, want exit code 4", c)
			}
		})
	}
}

func TestADiskThatTakesNoWritesKeepsOthersRunning(t *testing.T) {
	if !mayMount(t) {
		return
	}
	for story, fault := range faults {
		t.Run(story, func(t *testing.T) {
			h, disk := newHostOnSmallDisk(t)
			first := h.start(t, scriptPod("first", h.trapping()))
			h.hear(t)
			undo := fault(t, disk)
			pod := scriptPod("second", "exit 0")
			if err := h.StartPod(t.Context(), pod); err == nil {
				if _, err := h.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0); err == nil {
					t.Error("a container was started without room for its records")
				}
			}
			h.close()
			h.open(t)
			if c := h.only(t, "first"); c.State != runtime.Running {
				t.Errorf("got %+v, want it running", c)
			}
			// Killed, and with the shim: nothing can be written, and it is known.
			kill(t, h.shimOf(t, "first", first), syscall.SIGKILL)
			if c := h.awaitExit(t, "first"); c.Reason != runtime.ReasonUnknown || c.ExitCode != 137 {
				t.Errorf("got %+v, want ContainerStatusUnknown", c)
			}
			undo()
		})
	}
}

func TestAPodIsRemovedFromAFullDisk(t *testing.T) {
	if !mayMount(t) {
		return
	}
	h, disk := newHostOnSmallDisk(t)
	id := h.start(t, scriptPod("pod", h.trapping()))
	h.hear(t)
	shim := h.shimOf(t, "pod", id)
	fill(t, disk)
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod")
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, shim)
	if got := files(t, h.dir); len(got) != 4 {
		t.Errorf("left: %q", got)
	}
}

// The start that could not be recorded is known all the same.
func TestAStartThatCannotBeRecordedIsKnown(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", h.trapping())
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c, err := h.prepare(t.Context(), h.pods["pod"], pod, &pod.Spec.Containers[0], 0)
	if err == nil {
		err = os.MkdirAll(filepath.Join(c.dir.Started(), "in the way"), 0o700)
	}
	if err == nil {
		err = h.launch(t.Context(), h.pods["pod"], c)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.hear(t)
	for range 2 {
		if c := h.awaitStarted(t, "pod"); c.State != runtime.Running || c.StartedAt.IsZero() {
			t.Errorf("got %+v, want it running", c)
		}
		if result, err := h.Exec(t.Context(), c.spec.ID, []string{"true"}); err != nil || result.ExitCode != 0 {
			t.Errorf("exec: got %+v, %v", result, err)
		}
		h.close()
		h.open(t) // and again under another statusd
	}
}

// Without a socket a stop goes by the file, and without a file by signals.
func TestAStopWithoutTheSocket(t *testing.T) {
	for _, c := range []struct {
		story    string
		grace    time.Duration
		file     bool // stop.json can be written
		started  bool // the command is known
		wantCode int32
	}{
		{"by the file", time.Hour, true, true, 4},
		{"by the file, at once", 0, true, true, 137},
		{"by signals", time.Hour, false, true, 4},
		{"by signals, at once", 0, false, true, 137},
		{"by killing the shim", 0, false, false, 137},
	} {
		t.Run(c.story, func(t *testing.T) {
			h := newHost(t)
			h.open(t)
			id := h.start(t, scriptPod("pod", h.trapping()))
			main := h.hearPID(t)
			h.close()
			dir := podDir(filepath.Join(h.dir, "pods", "pod")).container(id)
			err := os.Remove(dir.Control())
			if !c.file {
				err = errors.Join(err, os.MkdirAll(filepath.Join(dir.Stop(), "in the way"), 0o700))
			}
			if !c.started {
				err = errors.Join(err, os.Remove(dir.Started()))
			}
			if err != nil {
				t.Fatal(err)
			}
			h.open(t)
			if err := h.StopContainer(t.Context(), id, c.grace); err != nil {
				t.Fatal(err)
			}
			if got := h.awaitExit(t, "pod"); got.ExitCode != c.wantCode {
				t.Errorf("got %+v, want exit code %d", got, c.wantCode)
			}
			expectEnded(t, "the container", main)
		})
	}
}

func TestASocketInAVeryLongDirectory(t *testing.T) {
	h := newHost(t)
	h.dir = filepath.Join(h.dir, strings.Repeat("long/", 100))
	h.open(t)
	id := h.start(t, scriptPod("pod", h.trapping()))
	h.hear(t)
	h.close()
	h.open(t)
	if h.find0(t, id).control < 0 {
		t.Error("no connection to the shim")
	}
	if err := h.StopContainer(t.Context(), id, time.Hour); err != nil {
		t.Fatal(err)
	}
	if c := h.awaitExit(t, "pod"); c.ExitCode != 4 {
		t.Errorf("got %+v, want exit code 4", c)
	}
}

func (h *host) find0(t *testing.T, id string) *container {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := h.find(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A shim that is started by hand, as seen in a list of processes, changes nothing.
func TestAShimStartedByHandDoesNothing(t *testing.T) {
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", fmt.Sprintf("echo ran > %s", h.pipe)))
	h.hear(t)
	h.awaitExit(t, "pod")
	before := files(t, h.dir)
	dir := string(podDir(filepath.Join(h.dir, "pods", "pod")).container(id).Dir)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	stranger, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	defer theirs.Close()
	for story, c := range map[string]struct {
		dir  string
		file *os.File
	}{
		"with /dev/null": {dir, null}, "with a pipe": {dir, stranger}, "with nothing": {dir, nil}, "elsewhere": {t.TempDir(), nil},
	} {
		cmd := exec.Command(os.Args[0], shimArgument, c.dir)
		if c.file != nil {
			cmd.ExtraFiles = []*os.File{c.file}
		}
		if output, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%s: got %v, %s; want exit code 2", story, err, output)
		}
		if _, err := os.Stat(c.dir); err != nil {
			t.Errorf("%s: %v", story, err)
		}
	}
	if got := files(t, h.dir); strings.Join(got, " ") != strings.Join(before, " ") {
		t.Errorf("got %q, want %q", got, before)
	}
}

// A shim that never gets its go removes nothing but what it knows.
func TestAShimThatIsNotToldToGoRemovesItsOwnFilesOnly(t *testing.T) {
	dir := record.Dir(t.TempDir())
	for _, path := range []string{dir.Spec(), filepath.Join(string(dir), "precious")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Discard(); err == nil {
		t.Error("a directory with something else in it: got no error")
	}
	if _, err := os.Stat(filepath.Join(string(dir), "precious")); err != nil {
		t.Error(err)
	}
}

// Who looks for the reason why a disk takes no writes needs exec, attach and logs.
func TestADiskThatTakesNoWritesStopsNoClient(t *testing.T) {
	if !mayMount(t) {
		return
	}
	for story, fault := range faults {
		t.Run(story, func(t *testing.T) {
			h, disk := newHostOnSmallDisk(t)
			pod := scriptPod("pod", `echo before; while read -r line; do echo "got $line"; done`)
			pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].StdinOnce = true, true
			id := h.start(t, pod)
			logs, err := h.Logs(t.Context(), id, runtime.LogOptions{Follow: true})
			if err != nil {
				t.Fatal(err)
			}
			defer logs.Close()
			lines := bufio.NewReader(logs)
			if line, err := lines.ReadString('\n'); line != "before\n" || err != nil {
				t.Fatalf("follow: got %q, %v; want what was written before", line, err)
			}
			undo := fault(t, disk)
			var out text
			if code, err := h.ExecStream(t.Context(), id, sh("cat; exit 9"), runtime.Streams{Stdin: strings.NewReader("hello"), Stdout: &out}); code != 9 || err != nil || out.String() != "hello" {
				t.Errorf("exec: got %d, %v and %q; want 9 and hello", code, err, out.String())
			}
			if stats, err := h.PodStats(t.Context(), "pod"); err != nil || len(stats.Containers) != 1 {
				t.Errorf("stats: got %+v, %v; want one container", stats, err)
			}
			var attached text
			if err := h.Attach(t.Context(), id, runtime.Streams{Stdin: strings.NewReader("hello\n"), Stdout: &attached}); err != nil || attached.String() != "got hello\n" {
				t.Errorf("attach: got %q, %v; want the answer", attached.String(), err)
			}
			undo()
			h.awaitExit(t, "pod")
			if _, err := io.ReadAll(lines); err != nil { // a full disk may have lost the answer
				t.Errorf("follow: got %v, want the end", err)
			}
		})
	}
}
