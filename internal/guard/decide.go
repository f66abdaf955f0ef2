package guard

import (
	"fmt"
	"time"
)

// Policy is when the guard restarts the kubelet.
type Policy struct {
	// Restart: it may restart the kubelet at all. RestartRuntime: it may restart the runtime if that is down.
	Restart, RestartRuntime bool
	// PerHour is how many restarts there may be within an hour.
	PerHour int
	// FirstPause is the pause after the first restart within an hour; it doubles with each further one, up to
	// LastPause.
	FirstPause, LastPause time.Duration
	// CoolDown is how long a kubelet that has just started, or a runtime that was just restarted, is left alone.
	CoolDown time.Duration
	// Never is why there is no restart at all, if that is not for the operator to decide. It is not news then.
	Never string
}

// DefaultPolicy observes and restarts nothing; once Restart is set, its bounds are these.
func DefaultPolicy() Policy {
	return Policy{PerHour: 5, FirstPause: 30 * time.Second, LastPause: 10 * time.Minute, CoolDown: time.Minute}
}

// History is what [Decide] needs to know beside the verdict.
type History struct {
	// Restarts by the guard, the oldest first.
	Restarts []Restart
	Process  Fact[Process]
	// Maintenance is until when nothing is restarted, Annotated what the Node's annotation says.
	Maintenance  time.Time
	Annotated    Fact[Maintenance]
	ShuttingDown bool
}

// Target is what is restarted.
type Target string

// The targets.
const (
	TargetKubelet Target = "kubelet"
	TargetRuntime Target = "runtime"
)

// Decision is what the guard does about a verdict.
type Decision struct {
	// Restart is what is restarted now; empty: nothing.
	Restart Target
	// Reason is why it is restarted, Withheld why it is not though something is wrong, Do what would help.
	Reason, Withheld, Do string
	// Next is when it may be restarted at the earliest, if time is what is missing.
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
	process := h.Process.Value
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
	case h.Process.Known && process.Masked:
		return "its unit is masked"
	case h.Process.Known && process.Stopping:
		return "its unit is being stopped by request"
	case h.Process.Known && !process.Exists && process.Disabled:
		return "its unit is disabled: enable it, or start it"
	case h.Process.Known && !process.Exists && !process.Asked.IsZero():
		return "its unit was stopped by request at " + process.Asked.UTC().Format(time.RFC3339) + ": start it when you are done"
	case h.Process.Known && (process.Restarting || process.Starting):
		return "its supervisor is about to start it"
	case !h.Process.Known && h.Process.Why != "": // a unit that was stopped by request and whose file was removed, as with its package
		return "whether it was stopped on purpose is not known: " + h.Process.Why
	}
	return ""
}

// MaintenanceAnnotation of a Node keeps its guard from restarting anything: until the time that it has (RFC 3339), or with any other value
// for as long as it is there. "false" and the empty value do not count.
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

// runtimeGrace is how long a runtime that was restarted is left alone at least: longer than it takes to see that it answers.
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
		later(recent[n-1].At.Add(pause), "the pause after %d restarts within an hour is %v", n, pause)
	}
	if n := len(recent); n > 0 && target == TargetRuntime {
		alone := max(p.CoolDown, runtimeGrace)
		later(recent[n-1].At.Add(alone), "it was restarted at %s and is left alone for %v", recent[n-1].At.UTC().Format(time.RFC3339), alone)
	}
	if process := h.Process; target == TargetKubelet && process.Known && process.Value.startKnown(now) {
		later(process.Value.Started.Add(p.CoolDown), "it started at %s and is left alone for %v",
			process.Value.Started.UTC().Format(time.RFC3339), p.CoolDown)
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

// Target is what was restarted.
func (r Restart) Target() Target {
	if r.What == TargetRuntime {
		return TargetRuntime
	}
	return TargetKubelet
}
