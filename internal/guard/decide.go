package guard

import (
	"fmt"
	"time"

	"github.com/statusd/statusd/internal/text"
)

// Policy is when the guard restarts the kubelet.
type Policy struct {
	// Restart allows restarts of the kubelet. RestartRuntime allows restarts of the runtime if it is down.
	Restart, RestartRuntime bool
	// PerHour is how many restarts there may be within an hour.
	PerHour int
	// FirstPause is the pause after the first restart within an hour; it doubles with each further one, up to
	// LastPause.
	FirstPause, LastPause time.Duration
	// CoolDown is how long a kubelet that has just started, or a runtime that was just restarted, is not
	// restarted again.
	CoolDown time.Duration
	// Never is why there is no restart at all, if that is not for the operator to decide. It is not news then.
	Never string
}

// DefaultPolicy observes and restarts nothing; once Restart is set, its bounds are these.
func DefaultPolicy() Policy {
	return Policy{PerHour: 5, FirstPause: 30 * time.Second, LastPause: 10 * time.Minute, CoolDown: time.Minute}
}

// History has the facts that [Decide] needs in addition to the verdict.
type History struct {
	// Restarts by the guard, the oldest first.
	Restarts []Restart
	Process  Fact[Process]
	// Maintenance is until when nothing is restarted, Annotated is the Node's annotation.
	Maintenance  time.Time
	Annotated    Fact[Maintenance]
	ShuttingDown bool
}

// Target is the process to restart.
type Target string

// The targets.
const (
	TargetKubelet Target = "kubelet"
	TargetRuntime Target = "runtime"
)

// Decision is the guard's action on a verdict.
type Decision struct {
	// Restart is the process to restart now; empty: nothing.
	Restart Target
	// Reason is why Restart is restarted, Withheld why nothing is restarted despite a problem, Do the
	// remedy.
	Reason, Withheld, Do string
	// Next is the earliest time of a restart, if only time prevents it.
	Next time.Time
}

// Decide makes a decision of a verdict. It is a pure function.
func Decide(v Verdict, p Policy, h History, now time.Time) Decision {
	if v.Health == Healthy || v.Health == Unknown {
		return Decision{}
	}
	target, reason, withheld := wanted(v, p)
	if withheld == "" {
		withheld = forbidden(target, p, h, now)
	}
	if withheld == "" && target == TargetKubelet { // the runtime's unit is read right before its restart
		withheld = leftAlone(h.Process)
	}
	if withheld != "" {
		return Decision{Withheld: withheld, Do: v.Do}
	}
	if next, why := earliest(target, p, h, now); next.After(now) {
		return Decision{Withheld: why, Next: next, Do: v.Do}
	}
	return Decision{Restart: target, Reason: reason}
}

// wanted is what should be restarted, or why nothing.
func wanted(v Verdict, p Policy) (target Target, reason, withheld string) {
	codes := map[string]string{}
	for _, r := range v.Reasons {
		codes[r.Code] = r.Message
	}
	switch {
	case v.Health == Unhealthy && v.Helps:
		return TargetKubelet, v.Reasons[0].Code, ""
	case codes[RuntimeDown] != "" && !v.pending && p.RestartRuntime:
		return TargetRuntime, RuntimeDown, ""
	case codes[RuntimeHangs] != "" && !v.pending && p.RestartRuntime:
		return TargetRuntime, RuntimeHangs, ""
	case v.Do != "":
		return "", "", "a restart would not help"
	case v.Health == Unhealthy:
		return "", "", "nothing says that a restart would help"
	}
	return "", "", "it is degraded, not unhealthy"
}

// forbidden is why a restart must not be made at any time, as things are.
func forbidden(target Target, p Policy, h History, now time.Time) string {
	switch {
	case h.ShuttingDown:
		return "the node is shutting down"
	case now.Before(h.Maintenance):
		return "maintenance until " + h.Maintenance.UTC().Format(time.RFC3339)
	case h.Annotated.Known && h.Annotated.Value.under(now):
		return "maintenance by the annotation " + MaintenanceAnnotation + " of the Node" + untilWords(h.Annotated.Value.Until)
	case target == TargetRuntime:
		return ""
	case p.Never != "":
		return p.Never
	case !p.Restart:
		return "restarts are not allowed by the configuration"
	}
	return ""
}

// leftAlone returns why a process must not be restarted, whatever its evidence says: an operator or a tool prevents it, or its supervisor
// already acts.
func leftAlone(process Fact[Process]) string {
	p := process.Value
	switch {
	case !process.Known && process.Why != "": // a unit that was stopped by request and whose file was removed, as with its package
		return "whether it was stopped on purpose is not known: " + process.Why
	case !process.Known:
		return ""
	case p.Masked:
		return "its unit is masked"
	case p.Frozen:
		return "its control group was frozen by request: thaw it (systemctl thaw) when you are done"
	case p.Stopping:
		return "its unit is being stopped by request"
	case !p.Exists && p.Disabled:
		return "its unit is disabled: enable it, or start it"
	case !p.Exists && !p.Asked.IsZero():
		return "its unit was stopped by request at " + p.Asked.UTC().Format(time.RFC3339) + ": start it when you are done"
	case p.Restarting || p.Starting:
		return "its supervisor is about to start it"
	}
	return ""
}

// MaintenanceAnnotation of a Node keeps its guard from restarting anything: until the time in its value (RFC 3339), or with any other
// value as long as the annotation exists. "false" and the empty value do not count.
const MaintenanceAnnotation = "statusd/maintenance"

// AnnotatedMaintenance reads the annotations of a Node.
func AnnotatedMaintenance(annotations map[string]string) Maintenance {
	value := annotations[MaintenanceAnnotation]
	if until, err := time.Parse(time.RFC3339, value); err == nil {
		return Maintenance{On: true, Until: until}
	}
	return Maintenance{On: value != "" && value != "false"}
}

func untilWords(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return " until " + until.UTC().Format(time.RFC3339)
}

// runtimeGrace is the minimum time between restarts of a runtime: longer than a runtime needs to answer.
const runtimeGrace = 30 * time.Second

// earliest is when the next restart may be made, and why not before.
func earliest(target Target, p Policy, h History, now time.Time) (next time.Time, why string) {
	var recent []Restart
	for _, r := range h.Restarts {
		if r.Target() == target && now.Sub(r.At) < time.Hour {
			recent = append(recent, r)
		}
	}
	later := func(t time.Time, format string, args ...any) {
		if t.After(next) {
			next, why = t, fmt.Sprintf(format, args...)
		}
	}
	if n := len(recent); n >= p.PerHour {
		at := now.Add(time.Hour)
		if n > 0 && p.PerHour > 0 {
			at = recent[n-p.PerHour].At.Add(time.Hour)
		}
		later(at, "%d restarts within the last hour are all that the budget allows", n)
	}
	if n := len(recent); n > 0 {
		pause := p.pause(n)
		later(recent[n-1].At.Add(pause), "the pause after %d restarts within an hour is %s", n, text.Took(pause))
	}
	if n := len(recent); n > 0 && target == TargetRuntime {
		alone := max(p.CoolDown, runtimeGrace)
		later(recent[n-1].At.Add(alone), "it was restarted at %s and gets %s to recover", recent[n-1].At.UTC().Format(time.RFC3339), text.Took(alone))
	}
	if process := h.Process; target == TargetKubelet && process.Known && process.Value.startKnown(now) {
		later(process.Value.Started.Add(p.CoolDown), "it started at %s and gets %s to recover",
			process.Value.Started.UTC().Format(time.RFC3339), text.Took(p.CoolDown))
	}
	return next, why
}

// pause is that after the nth restart within an hour.
func (p Policy) pause(n int) time.Duration {
	if n > 20 {
		return p.LastPause
	}
	return min(p.FirstPause<<(n-1), p.LastPause)
}

// Target returns the restarted process.
func (r Restart) Target() Target {
	if r.What == TargetRuntime {
		return TargetRuntime
	}
	return TargetKubelet
}
