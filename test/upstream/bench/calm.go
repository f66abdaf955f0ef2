package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

const (
	// calmLoad is the share of the processors that may be in use when a run begins.
	calmLoad = 0.1
	// calmWindow is how long they are watched for that.
	calmWindow = 250 * time.Millisecond
)

// calm has the garbage of this process and of the server collected, and waits until the
// machine is idle, so that a run does not pay for what the one before it has left behind. If
// the machine does not become idle, something else runs here, and that is said.
func (l *lab) calm(ctx context.Context) error {
	runtime.GC()
	collect := l.admin.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1")
	if _, err := collect.DoRaw(ctx); err != nil {
		return fmt.Errorf("collect the garbage of the API server: %w", err)
	}
	deadline := time.Now().Add(l.patience)
	for {
		load, err := load(ctx, calmWindow)
		if err != nil || load <= calmLoad {
			return err
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(l.log, "  the machine is %.0f %% busy with something else: do not trust these results\n", load*100)
			return nil
		}
	}
}

// load is the share of the processors that were in use during a time from now on.
func load(ctx context.Context, during time.Duration) (float64, error) {
	before, err := readCPU()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(during):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := readCPU()
	if err != nil || after.total == before.total {
		return 0, err
	}
	return 1 - float64(after.idle-before.idle)/float64(after.total-before.total), nil
}

// cpu counts the ticks of all processors since the machine was started.
type cpu struct{ idle, total uint64 }

func readCPU() (cpu, error) {
	const file = "/proc/stat"
	stat, err := os.ReadFile(file)
	if err != nil {
		return cpu{}, err
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	var c cpu
	for i, field := range bytes.Fields(line)[1:] {
		ticks, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return cpu{}, fmt.Errorf("%s: %w", file, err)
		}
		if i == 3 || i == 4 { // idle, and waiting for a disk
			c.idle += ticks
		}
		if i < 8 { // what follows is part of what came before
			c.total += ticks
		}
	}
	return c, nil
}
