package agent

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/bounded"
	"github.com/statusd/statusd/runtime"
)

const (
	// logPatience is how long the disk is waited for that has a log.
	logPatience = 100 * time.Millisecond
	// logTail is how many lines are read of a log.
	logTail = 40
	// maxLogs is how many ends of logs are kept.
	maxLogs = 500
)

// lastLogs are the ends of the logs of runs that have failed. A run that has ended writes no more, so each is read once.
type lastLogs struct {
	runtime runtime.Runtime
	calls   *bounded.Calls

	mu    sync.Mutex // guards lines
	lines map[string][]string
}

func newLastLogs(r runtime.Runtime) *lastLogs {
	return &lastLogs{runtime: r, calls: bounded.New(), lines: map[string][]string{}}
}

// add puts the ends of the logs of the runs that failed last into the facts. A disk that does not answer costs them, and nothing else.
func (l *lastLogs) add(f *explain.Facts) {
	status := f.Status
	if status == nil {
		return
	}
	for _, s := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		wanted, previous := f.FailedRun(s.Name)
		if !wanted {
			continue
		}
		id, ended := s.ContainerID, true
		switch {
		case previous:
			id = s.LastTerminationState.Terminated.ContainerID
		case s.State.Terminated != nil:
			id = s.State.Terminated.ContainerID
		default:
			ended = false
		}
		if lines, known := l.of(id, ended); known {
			c := f.Containers[s.Name]
			c.Log = &explain.Log{Container: s.Name, Previous: previous, Lines: lines}
			f.Containers[s.Name] = c
		}
	}
}

// of returns the end of the log of a run, and whether the log is known. That of a run that has ended is read once.
func (l *lastLogs) of(id string, ended bool) (lines []string, known bool) {
	if id == "" {
		return nil, false
	}
	l.mu.Lock()
	lines, known = l.lines[id]
	l.mu.Unlock()
	if known {
		return lines, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), logPatience)
	defer cancel()
	found := make(chan []string, 1)
	err := l.calls.Do(ctx, func() error {
		tail := int64(logTail)
		log, err := l.runtime.Logs(ctx, id, runtime.LogOptions{Tail: &tail})
		if err != nil {
			return err
		}
		defer log.Close()
		data, err := io.ReadAll(io.LimitReader(log, logTail*explain.MaxLog))
		found <- explain.LogLines(data[max(0, len(data)-explain.MaxLog):])
		return err
	})
	if err != nil {
		return nil, false // there is none any more, or the disk hangs
	}
	if lines = <-found; !ended {
		return lines, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= maxLogs {
		clear(l.lines)
	}
	l.lines[id] = lines
	return lines, true
}
