package explain

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/podstatus"
)

// crashLoop explains a container that ends again and again: how its last run ended leads, how often and what comes next follow.
func crashLoop(f Facts, c container) Cause {
	last := c.status.LastTerminationState.Terminated
	cause := Cause{Code: CodeCrashLoop, Text: mechanics(f, c, last), Next: waitUntil("it starts again", c.NextStart)}
	if last == nil {
		cause.Next.Do = "read the log of its last run"
		return cause
	}
	cause.Since, cause.Behind, cause.Causes = known(last.FinishedAt.Time), true, []Cause{exited(f, c, last)}
	return cause
}

// exited is the end of a run, and what the node ended it for.
func exited(f Facts, c container, t *v1.ContainerStateTerminated) Cause {
	cause := Cause{Code: CodeExited, Container: c.spec.Name, Since: known(t.FinishedAt.Time), Text: ending(f, c, t), Next: adviceForEnd(f, c, t)}
	if k := killed(f, c, t); k != nil {
		cause.Behind, cause.Causes, cause.Next = true, []Cause{*k}, nil
	}
	return cause
}

// mechanics says how often a container was restarted, how long its last run was, and when it starts again.
func mechanics(f Facts, c container, last *v1.ContainerStateTerminated) string {
	var parts []string
	n := int(c.status.RestartCount)
	if last == nil || n == 0 {
		parts = append(parts, "crash-loop back-off")
	}
	if n > 0 {
		often := counted(n, "restart", "restarts")
		if begun := f.begun(); begun.Before(f.Now) && !begun.IsZero() {
			often += " in " + text.Span(f.Now.Sub(begun))
		}
		if run := lasted(last); run != "" {
			often += ", the last after " + run
		}
		parts = append(parts, often)
	}
	switch {
	case c.NextStart.After(f.Now):
		parts = append(parts, "next start "+in(f.Now, c.NextStart))
	case !c.NextStart.IsZero():
		parts = append(parts, "next start at any moment")
	}
	return strings.Join(parts, " · ")
}

// begun is when the node took up the pod.
func (f Facts) begun() time.Time {
	if t := f.status().StartTime; t != nil {
		return t.Time
	}
	return f.Pod.CreationTimestamp.Time
}

// lasted says how long a run was, empty if that is not known. Runtimes date a run that never began at 0.
func lasted(t *v1.ContainerStateTerminated) string {
	if t == nil || t.StartedAt.Unix() <= 0 || t.FinishedAt.Before(&t.StartedAt) {
		return ""
	}
	return text.Span(t.FinishedAt.Sub(t.StartedAt.Time))
}

// whyEnded explains a container that has ended and is not ready for that reason.
func whyEnded(f Facts, c container) Cause {
	t := c.status.State.Terminated
	cause := Cause{Code: CodeWillNotRestart, Behind: true, Since: known(t.FinishedAt.Time), Causes: []Cause{exited(f, c, t)},
		Text: "ended" + at(f.Now, t.FinishedAt.Time) + ", and its restart policy does not start it again", Next: wait("the pod ends when its other containers have ended")}
	if others := f.othersRunning(c); t.ExitCode == 0 && len(others) > 0 && !podstatus.ShouldRestart(f.Pod, c.spec, t.ExitCode) && !c.sidecar {
		names := quoteAll(others)
		return Cause{Code: CodeWillNotRestart, Since: known(t.FinishedAt.Time), Text: "its work is done (exit code 0" + comma(at(f.Now, t.FinishedAt.Time)) + "), but " + plural(len(others), "container ", "containers ") + names + plural(len(others), " still runs", " still run"),
			Next: &Next{Wait: "the pod ends when its other containers have ended", Do: "have " + names + " end with the work, or make " + plural(len(others), "it a sidecar", "them sidecars") + ": an init container with restartPolicy Always"}}
	}
	if podstatus.ShouldRestart(f.Pod, c.spec, t.ExitCode) || c.sidecar {
		cause.Code, cause.Next = CodeWillRestart, startsAgain(f, c)
		cause.Text = "ended" + at(f.Now, t.FinishedAt.Time) + ", starts again"
		if c.NextStart.After(f.Now) {
			cause.Text += " " + in(f.Now, c.NextStart)
		}
	}
	return cause
}

// othersRunning are the running regular containers beside a container.
func (f Facts) othersRunning(c container) (names []string) {
	_, regular := f.containers()
	for _, other := range regular {
		if other.spec.Name != c.spec.Name && other.status != nil && other.status.State.Running != nil {
			names = append(names, other.spec.Name)
		}
	}
	return names
}

func startsAgain(f Facts, c container) *Next {
	if c.NextStart.After(f.Now) {
		return waitUntil("it starts again", c.NextStart)
	}
	return wait("it starts again at once")
}

// ending says how a container ended: "exit code 3: no such table", "exit code 137 (SIGKILL), killed for lack of memory".
func ending(f Facts, c container, t *v1.ContainerStateTerminated) string {
	said := fmt.Sprintf("exit code %d", t.ExitCode)
	if name := signal(t); name != "" && t.Reason != "ContainerStatusUnknown" {
		said += " (" + name + ")"
	}
	switch t.Reason {
	case "", "Error", "Completed":
	case "OOMKilled":
		said += ", killed for lack of memory" + f.shortOfMemory(c.spec.Name, t)
	case "StartError", "ContainerCannotRun":
		said += " (it could not be started)"
	case "ContainerStatusUnknown":
		said += " (its end was not seen)"
	default:
		said += ", reason " + shorten(t.Reason)
	}
	if words := lastWords(c, t); words != "" {
		said += ": " + words
	}
	return said
}

// lastWords is what a run that failed said last: its termination message, or else the line of its log that tells most.
func lastWords(c container, t *v1.ContainerStateTerminated) string {
	if words := telling(strings.Split(t.Message, "\n")); words != "" {
		return words
	}
	if t.ExitCode == 0 || c.Log == nil {
		return ""
	}
	return telling(c.Log.Lines)
}
