package logs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// throttle keeps the work of a reader to a share of one CPU. A reader that did not get its share, on a busy machine, may take it
// later, up to that of a second.
type throttle struct {
	share float64
	sleep func(context.Context, time.Duration) bool
	// spent is the CPU time that the reader has cost so far.
	spent func() time.Duration
	now   func() time.Time // monotonic

	before time.Duration
	until  time.Time // until then the work so far takes up the share
}

// maxCredit is how much of a share that was not used can be used later.
const maxCredit = time.Second

// begin is called before the first piece of work.
func (t *throttle) begin() { t.before, t.until = t.spent(), t.now() }

// worked waits until the work since the last call is within the share. worked reports whether ctx goes on.
func (t *throttle) worked(ctx context.Context) bool {
	spent, now := t.spent(), t.now()
	if earliest := now.Add(-maxCredit); t.until.Before(earliest) {
		t.until = earliest
	}
	t.until = t.until.Add(time.Duration(float64(max(0, spent-t.before)) / t.share))
	t.before = spent
	if wait := t.until.Sub(now); wait >= 20*time.Millisecond { // each sleep costs, too
		return t.sleep(ctx, wait)
	}
	return ctx.Err() == nil
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
