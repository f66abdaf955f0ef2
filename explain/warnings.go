package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// relevant are the warnings that can explain the present: alerts only repeat what explains them, a failure to schedule is over
// once a node has the pod, and so is what happened before that.
func (f Facts) relevant() []Warning {
	scheduled := f.scheduled()
	return slices.DeleteFunc(slices.Clone(f.Warnings), func(w Warning) bool {
		switch {
		case w.Reason == "AlertFiring", w.Reason == "AlertResolved":
			return true
		case f.Pod.Spec.NodeName == "":
			return false
		}
		return w.Reason == "FailedScheduling" || w.Last.Before(scheduled.Add(-time.Second)) // times of events have no fractions
	})
}

// scheduled is when a node got the pod, zero if that is not known.
func (f Facts) scheduled() time.Time {
	if c := f.condition(v1.PodScheduled); c != nil && c.Status == v1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// warning returns the newest warning about a container (empty: the pod) with one of the reasons.
func (f Facts) warning(container string, reasons ...string) *Warning {
	for i := len(f.Warnings) - 1; i >= 0; i-- {
		if w := &f.Warnings[i]; w.Container == container && slices.Contains(reasons, w.Reason) {
			return w
		}
	}
	return nil
}

// clearest returns the newest warning about the pod with one of the reasons; a warning that names the failure goes before a warning that a wait failed.
func (f Facts) clearest(reasons ...string) *Warning {
	for i := len(f.Warnings) - 1; i >= 0; i-- {
		if w := &f.Warnings[i]; w.Container == "" && slices.Contains(reasons, w.Reason) && !w.vague() {
			return w
		}
	}
	return f.warning("", reasons...)
}

// vague reports whether a warning says only that a wait for volumes failed.
func (w *Warning) vague() bool {
	return strings.HasPrefix(w.Message, "Unable to attach or mount volumes") && (strings.HasSuffix(w.Message, "timed out waiting for the condition") || strings.HasSuffix(w.Message, "context deadline exceeded"))
}

// probeWarning returns the newest warning about a probe of a container, or nil. The kind is
// startup, readiness or liveness; empty means any.
func (f Facts) probeWarning(container, kind string) *Warning {
	for i := len(f.Warnings) - 1; i >= 0; i-- {
		if w := &f.Warnings[i]; isProbeWarning(w, container, kind) {
			return w
		}
	}
	return nil
}

func isProbeWarning(w *Warning, container, kind string) bool {
	return w.Container == container && w.Reason == "Unhealthy" && strings.HasPrefix(strings.ToLower(w.Message), kind)
}

// probeFailures counts the failures of a probe of a container that warnings report; each answer has a warning of its own.
func (f Facts) probeFailures(container, kind string) int {
	count := 0
	for i := range f.Warnings {
		if w := &f.Warnings[i]; isProbeWarning(w, container, kind) {
			count += max(1, w.Count)
		}
	}
	return count
}

// creationWarnings are the reasons of warnings about what a container needs before it can start, with the code of the cause.
var creationWarnings = map[string]Code{
	"FailedMount": CodeVolumesNotReady, "FailedAttachVolume": CodeVolumesNotReady, "FailedMapVolume": CodeVolumesNotReady,
	"FailedCreatePodSandBox": CodeCreateFailed, "NetworkNotReady": CodeCreateFailed, "FailedCreatePodContainer": CodeCreateFailed, "FailedPrepareDynamicResources": CodeCreateFailed,
	"InspectFailed": CodeImage, "ErrImageNeverPull": CodeImage, "Failed": CodeImage, "BackOff": CodeImage,
}

// creationWarning returns the newest warning that explains why a container is still being created, or nil. Warnings from before
// the end of the last run are about that run and are ignored.
func (f Facts) creationWarning(c container) (*Warning, Code) {
	var ended time.Time
	if c.status != nil && c.status.LastTerminationState.Terminated != nil {
		ended = c.status.LastTerminationState.Terminated.FinishedAt.Time
	}
	var general *Warning
	for i := len(f.Warnings) - 1; i >= 0; i-- {
		w := &f.Warnings[i]
		code, ok := creationWarnings[w.Reason]
		if !ok || w.Last.Before(ended) || w.Container != "" && w.Container != c.spec.Name {
			continue
		}
		if code == CodeImage && !strings.Contains(strings.ToLower(w.Message), "image") { // of a container that fails
			continue
		}
		if w.vague() {
			general = cmp.Or(general, w)
			continue
		}
		return w, code
	}
	if general != nil {
		return general, creationWarnings[general.Reason]
	}
	return nil, ""
}
