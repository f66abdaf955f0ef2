package worker

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// A container that is to end goes through three steps, all within one grace:
//
//	preStop hook ──► its turn (sidecars wait for those they serve) ──► StopContainer
//
// halt decides which step is due. It is a function of data, so that the order of ends
// can be tested without a runtime.

// stopping is how far the stop of one container has come.
type stopping struct {
	by      time.Time // the end of its grace
	ordered bool      // a sidecar waits for its turn
	hook    hookState
	asked   time.Time // the end that the runtime was asked for; zero if it was not

	unposted bool // its postStart hook has failed, so that it never counted as running
}

type hookState int

const (
	hookDue hookState = iota // not run yet, if the container has one
	hookRuns
	hookOver
)

// step is what to do for a container that is to end.
type step struct {
	kind      stepKind
	container runtime.Container
	grace     time.Duration // for a stop
}

type stepKind string

const (
	runHook    stepKind = "hook"
	cancelHook stepKind = "cancel"
	stopNow    stepKind = "stop"
)

// halt returns the steps that are due, and when to look again at the latest. Containers
// are those that could run; those without an entry in stops are left alone.
func halt(pod *v1.Pod, containers []runtime.Container, stops map[string]stopping, now time.Time) (steps []step, wake time.Time) {
	for _, c := range containers {
		s, wanted := stops[c.ID]
		if !wanted {
			continue
		}
		inTime := now.Before(s.by)
		if inTime && s.asked.IsZero() {
			switch {
			case s.hook == hookDue && hasPreStop(pod, c.Name):
				steps = append(steps, step{kind: runHook, container: c})
				wake = earliest(wake, s.by)
				continue
			case s.hook == hookRuns, s.ordered && mustWait(pod, c.Name, containers):
				wake = earliest(wake, s.by)
				continue
			}
		}
		if s.hook == hookRuns {
			steps = append(steps, step{kind: cancelHook, container: c})
		}
		end := s.by
		if least := now.Add(minimumStop); end.Before(least) {
			end = least
		}
		if s.asked.IsZero() || end.Before(s.asked) {
			steps = append(steps, step{kind: stopNow, container: c, grace: end.Sub(now)})
		}
	}
	return steps, wake
}

// mustWait reports whether a sidecar still serves a container that could run: a regular
// one, or a sidecar that was started after it.
func mustWait(pod *v1.Pod, name string, containers []runtime.Container) bool {
	own := sidecarIndex(pod, name)
	if own < 0 {
		return false
	}
	for i := range containers {
		if isRegular(pod, containers[i].Name) || sidecarIndex(pod, containers[i].Name) > own {
			return true
		}
	}
	return false
}

func hasPreStop(pod *v1.Pod, name string) bool {
	c := podstatus.FindContainer(pod, name)
	return c != nil && c.Lifecycle != nil && c.Lifecycle.PreStop != nil
}
