package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// kmsg reads the log of the kernel. Its position is the boot and the sequence number of the last record,
// which the kernel counts from the boot on.
type kmsg struct {
	path     string // /dev/kmsg
	bootID   string
	throttle throttle
	now      func() time.Time
	// sinceBoot is the clock by which the kernel dates its records.
	sinceBoot func() time.Duration
	// user: lines that processes have written to the log count, too. The kernel marks them, so that no
	// process can fake a line of the kernel.
	user bool
}

func (k *kmsg) name() string { return "kernel" }

func (k *kmsg) read(ctx context.Context, position string, take func(batch)) error {
	file, err := os.OpenFile(k.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("%s cannot be followed: %w", k.path, err) // a read could not be ended
	}
	stop := context.AfterFunc(ctx, func() { file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	first := position == ""
	boot, last, ok := cutPosition(position)
	if !ok || boot != k.bootID {
		last = -1 // everything is of this boot
	}
	buffer := make([]byte, maxLine)
	k.throttle.begin()
	for {
		n, err := file.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EPIPE): // overwritten meanwhile; the next read goes on after it
			continue
		case err != nil:
			return err
		}
		began := k.now()
		r, err := parseKmsg(buffer[:n])
		if err != nil || r.seq <= last {
			continue
		}
		b := batch{origin: Kernel, count: 1, position: fmt.Sprintf("%s %d", k.bootID, r.seq)}
		if last >= 0 {
			b.lost = int(r.seq - last - 1)
		}
		last = r.seq
		at := began.Add(r.at - k.sinceBoot())
		if (r.facility == 0 || k.user) && !(first && began.Sub(at) > lookback) {
			b.lines = []line{{origin: Kernel, at: at, text: r.text, id: b.position}}
		}
		take(b)
		if !k.throttle.worked(ctx) {
			return nil
		}
	}
}

func cutPosition(position string) (boot string, seq int64, ok bool) {
	boot, number, ok := strings.Cut(position, " ")
	seq, err := strconv.ParseInt(number, 10, 64)
	return boot, seq, ok && err == nil
}

type kernelRecord struct {
	facility int
	seq      int64
	at       time.Duration // since the boot
	text     string
}

// parseKmsg reads a record: PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,…];TEXT, and further lines that begin
// with a space.
func parseKmsg(data []byte) (r kernelRecord, err error) {
	head, rest, ok := bytes.Cut(data, []byte(";"))
	fields := strings.Split(string(head), ",")
	if !ok || len(fields) < 3 {
		return r, errors.New("no record of the kernel's log")
	}
	priority, err1 := strconv.Atoi(fields[0])
	seq, err2 := strconv.ParseInt(fields[1], 10, 64)
	micros, err3 := strconv.ParseInt(fields[2], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return r, err
	}
	text, _, _ := bytes.Cut(rest, []byte("\n"))
	return kernelRecord{facility: priority >> 3, seq: seq, at: time.Duration(micros) * time.Microsecond, text: string(text)}, nil
}

// sinceBoot is the kernel's monotonic clock.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
