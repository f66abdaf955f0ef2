package audit

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// when is an instant in a message, in UTC as the API writes it, with the day unless it is today.
func (w *world) when(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	t = t.UTC()
	if now := w.Now.UTC(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

func times(n int64) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// ended is how a container of the runtime ended.
func (w *world) ended(c *Container) string {
	if c.Finished.IsZero() {
		return fmt.Sprintf("exited with code %d", c.ExitCode)
	}
	return fmt.Sprintf("exited with code %d at %s", c.ExitCode, w.when(c.Finished))
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
func (w *world) statusText(s *v1.ContainerStatus) string {
	if s == nil {
		return "no status"
	}
	text := fmt.Sprintf("%s, restartCount %d", stateWords(s), s.RestartCount)
	switch {
	case s.State.Running != nil:
		text += ", startedAt " + w.when(s.State.Running.StartedAt.Time)
	case s.State.Terminated != nil:
		text += ", finishedAt " + w.when(s.State.Terminated.FinishedAt.Time)
	}
	if id := bareID(s.ContainerID); id != "" {
		text += ", ID " + short(id)
	}
	return text
}

// runtimeText is a container of the runtime in full, for evidence.
func (w *world) runtimeText(c *Container) string {
	text := fmt.Sprintf("%s, attempt %d", c.State, c.Attempt)
	if !c.Started.IsZero() {
		text += ", started " + w.when(c.Started)
	}
	if c.State == ContainerExited {
		text += fmt.Sprintf(", finished %s, exit code %d", w.when(c.Finished), c.ExitCode)
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
