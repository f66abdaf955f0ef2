package process

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/runtime"
)

// burnt is what a shell has used for counting, as the kernel told its parent: the order of what
// a container that does the same must have used.
func burnt(t *testing.T, script string) time.Duration {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

const counting = `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`

// The CPU time counts of processes that run, of those that have ended, and of those that have
// lost their parents; the memory of those that run.
func TestStatsOfRealProcesses(t *testing.T) {
	h := newHost(t)
	h.open(t)
	const megabytes = 50
	// The sleep starts before the memory is taken: a child that is forked and executes nothing yet shares that memory.
	id := h.start(t, scriptPod("pod", fmt.Sprintf(`(%[1]s); sh -c '(%[1]s) & :'; wait; sleep 100000 & echo line; x=$(head -c %[2]d000000 /dev/zero | tr '\0' x); echo allocated > %[3]s; %[1]s; echo counted > %[3]s; wait`,
		counting, megabytes, h.pipe)))
	h.hear(t)
	h.hear(t)
	logs, err := h.Logs(t.Context(), id, runtime.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	if line, err := bufio.NewReader(logs).ReadString('\n'); err != nil { // until the shim has logged it
		t.Fatalf("log: got %q, %v", line, err)
	}
	stats, err := h.PodStats(t.Context(), "pod")
	if err != nil || len(stats.Containers) != 1 {
		t.Fatalf("got %+v, %v; want one container", stats, err)
	}
	one := burnt(t, counting)
	c := stats.Containers[0]
	// The orphan may still count.
	if cpu := time.Duration(c.CPU.Nanoseconds); cpu < one/2 || cpu > 100*one {
		t.Errorf("got %s of CPU time, want some times the %s of one count", cpu, one)
	}
	for name, got := range map[string]uint64{"working set": c.Memory.WorkingSet, "RSS": c.Memory.RSS, "usage": c.Memory.Usage} {
		if got < megabytes*1_000_000 || got > 10*megabytes*1_000_000 {
			t.Errorf("%s: got %d bytes, want some more than %d MB", name, got, megabytes)
		}
	}
	if c.Name != "main" || c.StartedAt.IsZero() || c.At.Before(c.StartedAt) || c.Processes < 2 || c.LogBytes < 5 || c.Memory.PageFaults == 0 {
		t.Errorf("got %+v, want its name, its times, its processes, its log and its page faults", c)
	}
	if stats.CPU.Nanoseconds != c.CPU.Nanoseconds || stats.Memory != c.Memory || stats.StartedAt.IsZero() {
		t.Errorf("got %+v, want the sums of its containers", stats)
	}
	if _, err := h.PodStats(t.Context(), "unknown"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestStatsCountCommandsThatAreExecuted(t *testing.T) {
	h, id := sleeping(t)
	if err := syscall.Mkfifo(h.pipe+".down", 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := h.ExecStream(t.Context(), id, sh(fmt.Sprintf("%s; echo counted > %[2]s; read line < %[2]s.down", counting, h.pipe)), runtime.Streams{})
		ended <- err
	}()
	h.hear(t)
	stats, err := h.PodStats(t.Context(), "pod")
	if err != nil {
		t.Fatal(err)
	}
	if one := burnt(t, counting); time.Duration(stats.CPU.Nanoseconds) < one/4 {
		t.Errorf("got %s of CPU time, want about %s", time.Duration(stats.CPU.Nanoseconds), one)
	}
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
