package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/test/campaign"
)

const (
	footprintSize = 100
	// settle is left for what follows a start: the last statuses, garbage collection.
	settle = 15 * time.Second
	// watched is how long an idle statusd is watched: six leases and looks at the machine.
	watched = time.Minute
)

// usage is what statusd and its shims use at a moment.
type usage struct {
	statusd consumer
	shims   []consumer
}

// consumer is a process. Proportional memory counts a page that n processes share as a
// n-th: the shims share their program.
type consumer struct {
	pid                    int
	cpu                    time.Duration
	resident, proportional int64 // KiB
}

// footprint measures what statusd needs when pods only exist.
func (d *demo) footprint(ctx context.Context) error {
	return d.withCrowd(ctx, footprintSize, withoutControllers, func(c *crowd) error {
		c.say("waiting %s for things to settle, then watching for %s", settle, watched)
		before, after, err := c.watch(ctx, watched, func() error { return nil })
		if err != nil {
			return err
		}
		c.report(before, after)
		return nil
	})
}

// watch returns the usage before and after an idle period; between calls also at both ends of the period.
func (c *crowd) watch(ctx context.Context, d time.Duration, also func() error) (before, after usage, err error) {
	if err := campaign.Pause(ctx, settle); err != nil {
		return before, after, err
	}
	if err := also(); err != nil {
		return before, after, err
	}
	if before, err = c.usage(); err != nil {
		return before, after, err
	}
	if err := campaign.Pause(ctx, d); err != nil {
		return before, after, err
	}
	if after, err = c.usage(); err != nil {
		return before, after, err
	}
	return before, after, also()
}

func (c *crowd) report(before, after usage) {
	total := func(u usage) (sum consumer) {
		for _, s := range u.shims {
			sum.cpu += s.cpu
			sum.resident += s.resident
			sum.proportional += s.proportional
		}
		return sum
	}
	shimsBefore, shims := total(before), total(after)
	row := func(name string, cpu time.Duration, m consumer) {
		c.say("%-20s %8.2f %% of one CPU %8.1f MiB resident %8.1f MiB proportional",
			name, 100*cpu.Seconds()/watched.Seconds(), float64(m.resident)/1024, float64(m.proportional)/1024)
	}
	c.say("\nidle with %d pods, over %s:\n", c.size, watched)
	row("statusd", after.statusd.cpu-before.statusd.cpu, after.statusd)
	row(fmt.Sprintf("%d shims", len(after.shims)), shims.cpu-shimsBefore.cpu, shims)
	if n := int64(len(after.shims)); n > 0 {
		row("one shim", (shims.cpu-shimsBefore.cpu)/time.Duration(n), consumer{resident: shims.resident / n, proportional: shims.proportional / n})
	}
}

// usage looks at statusd and at the shims of its containers.
func (c *crowd) usage() (usage, error) {
	var u usage
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return u, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		runtimeDir := filepath.Join(c.daemon.config.StateDir, "runtime")
		isShim := worksIn(pid, runtimeDir) || names(pid, runtimeDir)
		if !isShim && pid != c.daemon.PID() {
			continue
		}
		found, err := consumption(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errGone) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return u, err
		}
		if isShim {
			u.shims = append(u.shims, found)
		} else {
			u.statusd = found
		}
	}
	return u, nil
}

// worksIn reports whether the working directory of a process is below a directory, as that of a shim
// is below the directory of its runtime.
func worksIn(pid int, dir string) bool {
	at, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	return err == nil && strings.HasPrefix(at, dir+string(filepath.Separator))
}

// names reports whether an argument of a process begins with a directory, as of the shims of early versions of statusd.
func names(pid int, dir string) bool {
	arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(arguments, []byte("\x00"+dir+string(filepath.Separator)))
}

var errGone = errors.New("the process has ended")

func consumption(pid int) (consumer, error) {
	c := consumer{pid: pid}
	p, err := hostproc.Read("/proc", pid)
	if errors.Is(err, hostproc.ErrGone) || err == nil && p.Ended() {
		return c, errGone
	}
	if err != nil {
		return c, err
	}
	c.cpu = p.CPU
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return c, errGone
	}
	c.resident, c.proportional = kib(rollup, "Rss:"), kib(rollup, "Pss:")
	return c, nil
}

// kib finds "NAME:   123 kB".
func kib(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}
