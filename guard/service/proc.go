package service

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/statusd/statusd/guard"
)

// ticks is USER_HZ, which is 100 on every architecture that Go supports.
const ticks = 100

// sameStart is how far the start of a process that systemd has recorded and the kernel's may be apart.
const sameStart = 2 * time.Second

// look adds what the kernel says of a process: whether it is stopped or a zombie. A process of the same number
// that started at another time is one of another PID namespace, or another one; sinceBoot is when it
// must have started, 0 if that is not known. Times since boot do not change when the clock is set.
func look(p guard.Process, proc string, sinceBoot time.Duration) guard.Process {
	if p.PID == 0 {
		return p
	}
	stat, err := readStat(proc, p.PID)
	if err != nil || sinceBoot != 0 && (stat.sinceBoot-sinceBoot).Abs() > sameStart {
		return p
	}
	p.Stopped = stat.state == 'T' || stat.state == 't'
	p.Zombie = stat.state == 'Z'
	return p
}

type stat struct {
	state     byte
	sinceBoot time.Duration // when it started
}

// readStat reads /proc/PID/stat. The name in it may contain anything, also parentheses.
func readStat(proc string, pid int) (stat, error) {
	data, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("service: /proc/%d/stat is too short", pid)
	}
	since, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("service: /proc/%d/stat: %w", pid, err)
	}
	return stat{state: fields[0][0], sinceBoot: time.Duration(since) * (time.Second / ticks)}, nil
}

// startTime is a time since boot on the clock.
func startTime(proc string, sinceBoot time.Duration) (time.Time, error) {
	data, err := os.ReadFile(filepath.Join(proc, "uptime"))
	if err != nil {
		return time.Time{}, err
	}
	first, _, _ := strings.Cut(string(data), " ")
	uptime, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("service: %s/uptime: %w", proc, err)
	}
	return time.Now().Add(sinceBoot - time.Duration(uptime*float64(time.Second))), nil
}
