package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/podstatus"
)

// unreadyContainers explains each container that is not ready.
func unreadyContainers(f Facts, list []container) []Cause {
	var causes []Cause
	for _, c := range list {
		if c.status != nil && c.status.Ready {
			continue
		}
		cause := Cause{Code: CodeContainersNotReady, Container: c.spec.Name, Text: "container " + quote(c.spec.Name) + " is not ready"}
		if c.sidecar {
			cause.Text = "sidecar container " + quote(c.spec.Name) + " is not ready"
		}
		cause.Causes = []Cause{whyUnready(f, c)}
		causes = append(causes, cause)
	}
	return causes
}

// initCause explains which init container is not done, nil if all are.
func initCause(f Facts, inits []container) *Cause {
	for _, c := range inits {
		if initDone(c) {
			continue
		}
		what := "init container "
		if c.sidecar {
			what = "sidecar container "
		}
		cause := Cause{Code: CodeInitContainers, Container: c.spec.Name, Text: what + quote(c.spec.Name) + " is not done"}
		if c.sidecar {
			cause.Text = what + quote(c.spec.Name) + " has not started"
		}
		cause.Causes = []Cause{whyInit(f, c)}
		return &cause
	}
	return nil
}

func initDone(c container) bool {
	switch {
	case c.status == nil:
		return false
	case c.sidecar:
		return c.status.Started != nil && *c.status.Started
	default:
		return c.status.State.Terminated != nil && c.status.State.Terminated.ExitCode == 0
	}
}

func whyInit(f Facts, c container) Cause {
	if c.status != nil && c.status.State.Running != nil && !c.sidecar {
		text := "it has been running" + since(f.Now, c.status.State.Running.StartedAt.Time)
		if c.Log != nil && len(c.Log.Lines) > 0 {
			text += ", its log ends with " + quote(shorten(redact(strings.TrimSpace(c.Log.Lines[len(c.Log.Lines)-1]))))
		}
		return Cause{Code: CodeInitRunning, Container: c.spec.Name, Since: known(c.status.State.Running.StartedAt.Time), Text: text,
			Next: &Next{Wait: "the next container starts when it ends with exit code 0", Do: "read its log if it takes too long"}}
	}
	return whyUnready(f, c)
}

// whyUnready explains a container that is not ready.
func whyUnready(f Facts, c container) Cause {
	var cause Cause
	switch {
	case c.status == nil:
		cause = Cause{Code: CodeNotReported, Text: "the node has reported nothing about it",
			Next: wait("the node reports it with its next change")}
	case c.status.State.Waiting != nil:
		cause = whyWaiting(f, c)
	case c.status.State.Terminated != nil:
		cause = whyEnded(f, c)
	case c.status.State.Running != nil:
		cause = whyNotServing(f, c)
	default: // no state at all counts as waiting
		cause = Cause{Code: CodeNotReported, Text: "the node has not reported a state of it",
			Next: wait("the node reports it with its next change")}
	}
	cause.Container = c.spec.Name
	return cause
}

// whyNotServing explains a container that runs and is not ready.
func whyNotServing(f Facts, c container) Cause {
	started := c.status.State.Running.StartedAt.Time
	if c.Hook == "postStart" {
		return Cause{Code: CodePostStartRunning, Since: known(c.HookSince), Text: "its postStart hook has been running" + since(f.Now, c.HookSince),
			Next: &Next{Wait: "the container counts as started when the hook ends", Do: "if the hook hangs, correct its command or URL"}}
	}
	if c.spec.StartupProbe != nil && (c.status.Started == nil || !*c.status.Started) {
		return probing(f, c, CodeStartupProbe, "startup", c.Startup, c.spec.StartupProbe, started)
	}
	if c.spec.ReadinessProbe == nil && c.spec.Lifecycle != nil && c.spec.Lifecycle.PostStart != nil {
		return Cause{Code: CodePostStartRunning, Since: known(started), Text: "its postStart hook has not ended" + since(f.Now, started),
			Next: &Next{Wait: "the container counts as started when the hook ends", Do: "if the hook hangs, correct its command or URL"}}
	}
	if c.spec.ReadinessProbe == nil {
		return Cause{Code: CodeReadinessNotReported, Since: known(started), Text: "it has been running" + since(f.Now, started) + " and has no readiness probe, but was not reported as ready",
			Next: wait("the node reports it with its next change")}
	}
	code := CodeReadinessProbeFailing
	if c.Readiness == nil || c.Readiness.Failures == 0 {
		code = CodeReadinessProbePending
	}
	return probing(f, c, code, "readiness", c.Readiness, c.spec.ReadinessProbe, started)
}

// probing explains a container by its probes.
func probing(f Facts, c container, code Code, kind string, p *podstatus.Probe, spec *v1.Probe, started time.Time) Cause {
	cause := Cause{Code: code}
	if name := missingPort(c.spec, spec); name != "" {
		return Cause{Code: code, Since: known(started), Text: "its " + kind + " probe names port " + quote(name) + ", which the container does not have",
			Next: do("correct the name of the port in the probe, or give a port of the container that name")}
	}
	period := seconds(spec.PeriodSeconds, 10)
	threshold := max(spec.SuccessThreshold, 1)
	target := target(c.spec, spec)
	switch {
	case p != nil && p.Failures > 0:
		cause.Since = known(p.Since)
		cause.Text = fmt.Sprintf("its %s probe%s has failed %s%s", kind, target, times(p.Failures), since(f.Now, p.Since))
		if p.Answer != "" {
			cause.Text += ", last answer " + quote(shorten(p.Answer))
		}
		if code == CodeReadinessProbePending {
			cause.Code = CodeReadinessProbeFailing
		}
	case (p == nil || p.Failures == 0 && f.errored(c.spec.Name, kind)) && f.probeWarning(c.spec.Name, kind) != nil && !f.probeWarning(c.spec.Name, kind).Last.Before(started):
		w := f.probeWarning(c.spec.Name, kind)
		cause.Since = known(w.Last)
		cause.Text = "its " + kind + " probe" + target + " fails"
		if said := strings.TrimSuffix(strings.TrimSpace(w.Message), ":"); !strings.HasSuffix(said, "probe failed") { // it has said something
			cause.Text += ": " + shorten(w.Message)
		}
		if code == CodeReadinessProbePending {
			cause.Code = CodeReadinessProbeFailing
		}
	default:
		cause.Since = known(started)
		cause.Text = "its " + kind + " probe" + target + " has not succeeded yet"
		first := started.Add(seconds(spec.InitialDelaySeconds, 0))
		if p != nil && !p.NotBefore.IsZero() {
			first = p.NotBefore
		}
		if first.After(f.Now) {
			cause.Text += ": the first probe is due " + in(f.Now, first)
		}
	}
	succeeds := "the probe succeeds"
	if threshold > 1 {
		succeeds = fmt.Sprintf("the probe succeeds %d times in a row", threshold)
	}
	effect := "the container becomes ready"
	if kind == "startup" {
		effect = "the container counts as started"
	}
	cause.Next = &Next{Wait: fmt.Sprintf("%s when %s; it is probed every %s", effect, succeeds, text.Span(period)), Do: adviceForProbe(cause, kind)}
	if kind == "startup" && p != nil && p.Failures > 0 {
		cause.Next.Wait += "; after " + failuresLeft(spec, p) + " more it is killed"
	}
	return cause
}

// startupFails reports whether a container runs and its startup probe has not succeeded.
func (c container) startupFails() bool {
	return c.spec.StartupProbe != nil && c.status.State.Running != nil && (c.status.Started == nil || !*c.status.Started)
}

// failuresLeft is how many failures more make a verdict.
func failuresLeft(spec *v1.Probe, p *podstatus.Probe) string {
	return counted(max(threshold(spec)-p.Failures, 1), "failure", "failures")
}

// threshold is how many failures in a row a probe needs to have an effect.
func threshold(spec *v1.Probe) int {
	if spec != nil && spec.FailureThreshold > 0 {
		return int(spec.FailureThreshold)
	}
	return 3 // the default of the API
}

// failingLiveness are the running containers whose liveness probes fail, and that are restarted if
// that goes on.
func failingLiveness(f Facts) []Cause {
	var list []Cause
	inits, regular := f.containers()
	for _, c := range append(sidecars(inits), regular...) {
		p, spec := c.Liveness, c.spec.LivenessProbe
		if p == nil || spec == nil || p.Failures == 0 || c.status == nil || c.status.State.Running == nil {
			continue
		}
		cause := Cause{Code: CodeLivenessFailing, Container: c.spec.Name, Since: known(p.Since),
			Text: fmt.Sprintf("the liveness probe%s of container %s has failed %s%s", target(c.spec, spec), quote(c.spec.Name), times(p.Failures), since(f.Now, p.Since))}
		if p.Answer != "" {
			cause.Text += ", last answer " + quote(shorten(p.Answer))
		}
		cause.Next = &Next{Wait: "after " + failuresLeft(spec, p) + " more the container is restarted", Do: adviceForProbe(cause, "liveness")}
		list = append(list, cause)
	}
	return list
}

// killed reports why the node has ended a run of a container, nil if it has not. A probe that has not failed
// as often as it must is no reason: a process that is killed by another often has failed probes at its start.
func killed(f Facts, c container, t *v1.ContainerStateTerminated) *Cause {
	if k := killedByHook(f, c, t); k != nil {
		return k
	}
	p := c.Liveness
	if p == nil || c.status == nil || c.status.LastTerminationState.Terminated != t || p.Failures < threshold(c.spec.LivenessProbe) {
		return killedByWarning(f, c.spec.Name, t)
	}
	cause := Cause{Code: CodeLivenessKilled, Container: c.spec.Name, Since: known(p.Since),
		Text: fmt.Sprintf("its liveness probe%s had failed %s", target(c.spec, c.spec.LivenessProbe), times(p.Failures))}
	if p.Answer != "" {
		cause.Text += ", last answer " + quote(shorten(p.Answer))
	}
	cause.Next = do(adviceForProbe(cause, "liveness"))
	return &cause
}

// errored reports whether the newest warning about a probe is that it could not be asked, which counts neither as a success nor as a failure.
func (f Facts) errored(container, kind string) bool {
	w := f.probeWarning(container, kind)
	return w != nil && strings.Contains(w.Message, "probe errored")
}

// killedByHook: a container whose postStart hook fails is killed.
func killedByHook(f Facts, c container, t *v1.ContainerStateTerminated) *Cause {
	w := f.warning(c.spec.Name, "FailedPostStartHook")
	if w == nil || t == nil {
		return nil
	}
	why := redact(strings.TrimPrefix(strings.TrimPrefix(w.Message, "PostStartHook failed"), ": "))
	text := "its postStart hook failed" + detail(why)
	if !f.ledTo(w, t) {
		if name := signal(t); c.spec.Lifecycle == nil || c.spec.Lifecycle.PostStart == nil || name != "SIGTERM" && name != "SIGKILL" {
			return nil
		}
		text = "the node kills it when its postStart hook fails, as it did before" + detail(why) // events are limited in number
	}
	return &Cause{Code: CodeHookFailed, Container: c.spec.Name, Since: known(w.Last), Text: text,
		Next: &Next{Do: "check the command or URL of the postStart hook", Command: "kubectl describe pod -n " + f.Pod.Namespace + " " + f.Pod.Name}}
}

// ledTo reports whether a warning can be why the node has ended a run.
func (f Facts) ledTo(w *Warning, t *v1.ContainerStateTerminated) bool {
	before := t.FinishedAt.Sub(w.Last)
	return before >= -time.Second && before <= f.grace()+killLate // times of containers have no fractions
}

// killedByWarning is killed as the warnings show it: the probes of a run end with it.
func killedByWarning(f Facts, container string, last *v1.ContainerStateTerminated) *Cause {
	if last == nil || last.Reason == "OOMKilled" {
		return nil
	}
	liveness, startup := f.killers(container)
	for _, kind := range []string{"liveness", "startup"} {
		spec, w := liveness, f.probeWarning(container, kind)
		if kind == "startup" {
			spec = startup
		}
		if spec == nil || w == nil || f.probeFailures(container, kind) < threshold(spec) {
			continue
		}
		cause := &Cause{Code: CodeLivenessKilled, Container: container, Since: known(w.Last), Text: "the node has killed it: " + said(w)}
		if !f.ledTo(w, last) {
			if name := signal(last); name != "SIGTERM" && name != "SIGKILL" && last.ExitCode != 0 { // many programs end with 0 if they are asked to
				continue
			}
			// Events are limited in number, so that the newest kills may have none: this is how earlier runs ended.
			cause.Since, cause.Text = nil, "the node kills it when its "+kind+" probe fails, as it did before: "+said(w)
		}
		cause.Next = do(adviceForProbe(*cause, kind))
		return cause
	}
	return nil
}

// missingPort returns the name of a probe's port that the container does not have, or empty.
func missingPort(c *v1.Container, p *v1.Probe) string {
	var name intstr.IntOrString
	switch {
	case p.HTTPGet != nil:
		name = p.HTTPGet.Port
	case p.TCPSocket != nil:
		name = p.TCPSocket.Port
	}
	if name.Type == intstr.Int || slices.ContainsFunc(c.Ports, func(p v1.ContainerPort) bool { return p.Name == name.StrVal }) {
		return ""
	}
	if _, err := strconv.Atoi(name.StrVal); err == nil {
		return ""
	}
	return name.StrVal
}

// killLate is how much longer than its grace a container that is killed may take to end.
const killLate = 10 * time.Second

// killers returns the probes whose failures kill a container, or nil.
func (f Facts) killers(container string) (liveness, startup *v1.Probe) {
	for _, c := range slices.Concat(f.Pod.Spec.InitContainers, f.Pod.Spec.Containers) {
		if c.Name == container {
			return c.LivenessProbe, c.StartupProbe
		}
	}
	return nil, nil
}

// grace is what a container has to end by itself.
func (f Facts) grace() time.Duration {
	if seconds := f.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return v1.DefaultTerminationGracePeriodSeconds * time.Second
}
