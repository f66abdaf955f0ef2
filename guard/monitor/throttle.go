package monitor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// throttle keeps the work of a reader to a share of one CPU: after each piece of work it waits so much
// longer than the work took.
type throttle struct {
	share float64
	sleep func(context.Context, time.Duration) bool
	// spent is the CPU time that the reader has cost so far.
	spent func() time.Duration

	before, owed time.Duration
}

// begin is called before the first piece of work.
func (t *throttle) begin() { t.before, t.owed = t.spent(), 0 }

// worked waits until the work since the last call is within the share. It reports whether ctx goes on.
func (t *throttle) worked(ctx context.Context) bool {
	now := t.spent()
	t.owed += time.Duration(float64(max(0, now-t.before)) * (1/t.share - 1))
	t.before = now
	if t.owed < 5*time.Millisecond { // too short to sleep
		return ctx.Err() == nil
	}
	owed := t.owed
	t.owed = 0
	return t.sleep(ctx, owed)
}

// threadTime is the CPU time of this thread. The goroutine must be locked to it.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// processTime is the CPU time of a process with one thread, 0 if it is not known.
func processTime(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(data, []byte(" "))
	ns, err := strconv.ParseInt(string(first), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ns)
}
