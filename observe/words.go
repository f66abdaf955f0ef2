package observe

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// clock is an instant in a message, in UTC as the API writes it.
func clock(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("15:04:05")
}

// span is a duration in a message, in whole seconds.
func span(d time.Duration) string { return max(d, 0).Round(time.Second).String() }

func times(n int64) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// ended is how a container of the runtime ended.
func ended(c *Container) string {
	if c.Finished.IsZero() {
		return fmt.Sprintf("exited with code %d", c.ExitCode)
	}
	return fmt.Sprintf("exited with code %d at %s", c.ExitCode, clock(c.Finished))
}

// stateWords is what a status says of a container, for a message.
func stateWords(s *v1.ContainerStatus) string {
	switch {
	case s == nil:
		return "not started"
	case s.State.Running != nil:
		return "running"
	case s.State.Terminated != nil:
		return fmt.Sprintf("terminated (%s, exit code %d)", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
	case s.State.Waiting != nil:
		return fmt.Sprintf("waiting (%s)", s.State.Waiting.Reason)
	}
	return "unknown"
}

// statusText is a status in full, for evidence.
func statusText(s *v1.ContainerStatus) string {
	if s == nil {
		return "no status"
	}
	text := fmt.Sprintf("%s, restartCount %d", stateWords(s), s.RestartCount)
	switch {
	case s.State.Running != nil:
		text += ", startedAt " + clock(s.State.Running.StartedAt.Time)
	case s.State.Terminated != nil:
		text += ", finishedAt " + clock(s.State.Terminated.FinishedAt.Time)
	}
	if id := bareID(s.ContainerID); id != "" {
		text += ", ID " + short(id)
	}
	return text
}

// runtimeText is a container of the runtime in full, for evidence.
func runtimeText(c *Container) string {
	text := fmt.Sprintf("%s, attempt %d", c.State, c.Attempt)
	if !c.Started.IsZero() {
		text += ", started " + clock(c.Started)
	}
	if c.State == ContainerExited {
		text += fmt.Sprintf(", finished %s, exit code %d", clock(c.Finished), c.ExitCode)
		if c.Reason != "" {
			text += " (" + c.Reason + ")"
		}
	}
	return text + ", ID " + short(c.ID)
}

// short is the part of an ID that runtimes show.
func short(id string) string {
	if len(id) > 13 {
		return id[:13]
	}
	return id
}
