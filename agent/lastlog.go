package agent

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/bounded"
	"github.com/statusd/statusd/runtime"
)

const (
	// logPatience is how long to wait for the disk with a log.
	logPatience = 100 * time.Millisecond
	// logTail is how many lines are read of a log.
	logTail = 40
	// maxLogs is how many ends of logs are kept.
	maxLogs = 500
)

// lastLogs are the ends of the logs of runs that have failed. The log of an ended run does not change, so it is read
// once.
type lastLogs struct {
	runtime runtime.Runtime
	calls   *bounded.Calls

	mu    sync.Mutex // guards lines
	lines map[string][]string
}

func newLastLogs(r runtime.Runtime) *lastLogs {
	return &lastLogs{runtime: r, calls: bounded.New(), lines: map[string][]string{}}
}

// add adds the ends of the logs of the last failed runs to the facts. If the disk hangs, only the logs are missing.
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

// read returns the last bytes of the last lines of the log of a run.
func (l *lastLogs) read(ctx context.Context, id string, lines, bytes int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	found := make(chan []byte, 1)
	err := l.calls.Do(ctx, func() error {
		log, err := l.runtime.Logs(ctx, id, runtime.LogOptions{Tail: &lines})
		if err != nil {
			return err
		}
		defer log.Close()
		data, err := io.ReadAll(io.LimitReader(log, lines*bytes))
		found <- data[max(0, len(data)-int(bytes)):]
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-found, nil
}

// lastLines returns the last lines of the log of a run of a container, or false without lines or if the disk hangs.
func (a *Agent) lastLines(ctx context.Context, uid types.UID, container string, previous bool, lines int, bytes int64) ([]string, bool) {
	status, ok := a.manager.GetPodStatus(uid)
	if !ok {
		return nil, false
	}
	for _, s := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if s.Name != container {
			continue
		}
		id := s.ContainerID
		if previous {
			id = ""
			if last := s.LastTerminationState.Terminated; last != nil {
				id = last.ContainerID
			}
		}
		if id == "" {
			return nil, false
		}
		data, err := a.logs.read(ctx, id, int64(lines), bytes)
		return explain.Tail(data, lines), err == nil
	}
	return nil, false
}

// of returns the end of the log of a run, and whether the log is known. The log of an ended run is read once.
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
	data, err := l.read(context.Background(), id, logTail, explain.MaxLog)
	if err != nil {
		return nil, false // the log was deleted, or the disk hangs
	}
	if lines = explain.LogLines(data); !ended {
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
