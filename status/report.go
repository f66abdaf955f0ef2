package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// set stores a status that may have changed. It is separate from SetPodStatus so that the common
// case, no change, allocates nothing.
func (m *Manager) set(pod *v1.Pod, status v1.PodStatus, forced bool) (bool, error) {
	if err := checkStatus(&status); err != nil {
		return false, m.refuse(pod, "status", err)
	}
	status.ObservedGeneration = pod.Generation // U2
	m.warnOfForeign(pod, status.Conditions)
	return m.store(pod, storing{by: "SetPodStatus", forced: forced}, func(old *v1.PodStatus, _ bool) (v1.PodStatus, error) {
		if m.opts.CompleteReports {
			return m.complete(pod, old, &status)
		}
		return m.owns.Next(pod, old, &status, time.Now()), orNil(phaseError(old, &status))
	})
}

// complete fills in fields that a report leaves out. An empty phase is computed from the containers
// and from an earlier terminal phase.
func (m *Manager) complete(pod *v1.Pod, old, reported *v1.PodStatus) (v1.PodStatus, error) {
	next := podstatus.Complete(pod, *reported, *old, time.Now(), m.opts.OwnedConditions...)
	if reported.Phase == "" {
		return next, nil
	}
	return next, orNil(phaseError(old, reported))
}

// UpdatePodStatus changes the stored status of a pod atomically: no other report is stored between
// reading and writing the status. The function gets a copy, may be called more than once, and must
// not call the manager.
func (m *Manager) UpdatePodStatus(uid types.UID, update func(*v1.PodStatus)) (changed bool, err error) {
	pod, ok := m.opts.Pods.ByUID(uid)
	if !ok {
		return false, fmt.Errorf("status: pod %s: %w", uid, ErrUnknownPod)
	}
	return m.store(pod, storing{by: "UpdatePodStatus"}, func(old *v1.PodStatus, cached bool) (v1.PodStatus, error) {
		if !cached {
			return v1.PodStatus{}, ErrNoStatus
		}
		status := old.DeepCopy()
		update(status)
		if err := checkStatus(status); err != nil {
			m.metrics.refused.WithLabelValues("status").Inc()
			return v1.PodStatus{}, err
		}
		return m.owns.Next(pod, old, status, time.Now()), orNil(phaseError(old, status))
	})
}

func (m *Manager) flip(by string, uid types.UID, containerID string, value bool,
	with func(*v1.Pod, *v1.PodStatus, string, bool, time.Time) (v1.PodStatus, podrules.Flip)) error {
	pod, ok := m.opts.Pods.ByUID(uid)
	if !ok {
		return fmt.Errorf("status: pod %s: %w", uid, ErrUnknownPod)
	}
	_, err := m.store(pod, storing{by: by, part: true}, func(old *v1.PodStatus, cached bool) (v1.PodStatus, error) {
		if !cached {
			return v1.PodStatus{}, ErrNoStatus
		}
		next, flip := with(pod, old, containerID, value, time.Now())
		if flip == podrules.UnknownContainer {
			return v1.PodStatus{}, fmt.Errorf("container %s: %w", containerID, ErrUnknownContainer)
		}
		return next, nil
	})
	return err
}

// ObserveTermination stores the termination of a container in the journal, so that
// [Manager.TerminatePod] can report it even if this process crashes first. The termination is kept
// until the API server has a status that no longer lists the container. Without a journal,
// ObserveTermination does nothing. A manager with its own table returns [ErrUnknownPod] for a pod
// that was neither observed nor reported: such a pod may be gone, and its termination would stay in
// the journal forever.
func (m *Manager) ObserveTermination(uid types.UID, containerID string, how v1.ContainerStateTerminated) error {
	if m.opts.Journal == nil {
		return nil
	}
	if !m.knows(uid) {
		return fmt.Errorf("status: pod %s: %w", uid, ErrUnknownPod)
	}
	containerID = podrules.ValidText(containerID) // as in the cached status
	m.ends.recorded(uid, containerID, how)
	x := m.writes.add(uid, writeOther, func() error {
		return m.journaled("record termination", uid, m.opts.Journal.RecordTermination(uid, containerID, how))
	})
	return m.unlessHung("record termination", uid, m.writes.wait(x))
}

func (m *Manager) retain(keep func(types.UID) bool) {
	for _, uid := range m.cache.unknown(keep) {
		m.cache.remove(uid)
		m.ends.forget(uid)
	}
	m.resizes.retain(keep)
	if m.opts.Journal != nil {
		m.unlessHung("remove orphaned pods", "", m.writes.wait(m.retainInJournal(keep)))
	}
}

// retainInJournal removes from the journal the pods that are not to be kept.
func (m *Manager) retainInJournal(keep func(types.UID) bool) *write {
	return m.writes.retain(keep, func(keep func(types.UID) bool) error {
		_, err := m.opts.Journal.RetainPods(keep)
		return m.journaled("remove orphaned pods", "", err)
	}, m.removeFromJournal)
}

// PhaseError is the cause of a [*Warning]: a status would have taken a pod out of its terminal phase.
type PhaseError struct {
	Has, Wanted v1.PodPhase
}

func (e *PhaseError) Error() string {
	return fmt.Sprintf("the pod has ended as %s and cannot become %s; the rest of the status was stored", e.Has, e.Wanted)
}

func phaseError(old, incoming *v1.PodStatus) *PhaseError {
	if podrules.LeavesEnd(old, incoming) {
		return &PhaseError{Has: old.Phase, Wanted: incoming.Phase}
	}
	return nil
}

// orNil converts a nil *PhaseError to a nil error.
func orNil(err *PhaseError) error {
	if err == nil {
		return nil
	}
	return err
}

// storing is how a status is to be stored.
type storing struct {
	by     string // the kind of call
	forced bool   // also if nothing differs
	finish bool   // the pod has ended for good
	part   bool   // only a container is reported, and not the phase
}

// store computes the next status of a pod from the one before it and puts it in the cache, again
// from the start if another report was faster. The function build gets the previous status, and
// whether it is from the cache; an error from build, other than a PhaseError, ends the attempt.
func (m *Manager) store(pod *v1.Pod, how storing, build func(old *v1.PodStatus, cached bool) (v1.PodStatus, error)) (bool, error) {
	for {
		before := m.cache.load(pod.UID)
		gone := before == nil && m.gone.get(pod.UID, time.Now()) != nil
		if gone && how.finish {
			return false, nil // there is nothing to be done
		}
		if gone || before == nil && m.former(pod) {
			return false, fmt.Errorf("status: pod %s/%s: UID %s: %w", pod.Namespace, pod.Name, pod.UID, ErrUnknownPod)
		}
		if before != nil && before.restored && m.knownOvertaken(pod, before) {
			continue
		}
		static := podstatus.IsStatic(pod)
		old := m.statusBefore(pod, before, how)
		next := &snapshot{
			namespace: pod.Namespace,
			name:      pod.Name,
			static:    static,
			// Finished is sticky, but for static pods: their UID comes back (M0d).
			finished: how.finish || before != nil && before.finished && !static,
		}
		var err error
		next.status, err = build(old, before != nil)
		refused, isPhase := errors.AsType[*PhaseError](err)
		if err != nil && !isPhase {
			return false, fmt.Errorf("status: pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if err := m.checkTransitions(pod, old, &next.status); err != nil {
			return false, err
		}
		next.vanished = vanished(pod, before, old, &next.status)
		now := time.Now()
		if before != nil && m.owns.Equal(old, &next.status) && (!how.forced || before.endedAs(next)) {
			if how.forced {
				m.repeated(pod, now)
			}
			return how.forced, warning(m.refusePhase(pod, refused), m.withheldBy(pod, how, before))
		}
		ok, awaited := m.cache.swap(before, next, pod, old, how.by, now)
		if !ok {
			continue
		}
		m.stored(old, next, turnRequest{uid: pod.UID, at: now, expedite: awaited, stored: true})
		withheld := m.withheldBy(pod, how, next)
		if withheld != nil && (before == nil || !m.cache.withholds(before)) {
			m.opts.Logger.Warn("terminal phase withheld from the API: containers may still be running", "pod", next.podName(), "uid", pod.UID, "err", withheld)
		}
		return true, warning(m.keepFinal(pod.UID, next), m.refusePhase(pod, refused), withheld)
	}
}

// withheldBy returns the error of a report whose phase is withheld, nil if the report was not about the phase.
func (m *Manager) withheldBy(pod *v1.Pod, how storing, s *snapshot) error {
	if how.part {
		return nil
	}
	return m.withheld(pod, s)
}

// repeated handles a repeated report of a terminal status: it creates no version and costs no write. If the
// pod waits for something on this node, the wait may be over.
func (m *Manager) repeated(pod *v1.Pod, now time.Time) {
	if m.opts.Client != nil && m.cache.awaits(pod, m.opts.AlwaysRead) {
		m.engine.changed(turnRequest{uid: pod.UID, urgency: withdrawal, at: now, expedite: true})
	}
}

// statusBefore returns the status that a report is compared with: the cached status, else the API's
// (U5). A restarted static pod keeps its UID: a report after its end starts over, without the
// previous end.
func (m *Manager) statusBefore(pod *v1.Pod, cached *snapshot, how storing) *v1.PodStatus {
	static := podstatus.IsStatic(pod)
	switch {
	case cached != nil && static && !how.finish && (cached.finished || !cached.static):
		return earlierLife(&cached.status)
	case cached != nil:
		return &cached.status
	case static:
		mirror, ok := m.opts.Pods.MirrorOf(pod)
		if ok && how.finish {
			return &mirror.Status
		}
		if ok && podstatus.IsTerminal(mirror.Status.Phase) {
			return earlierLife(&mirror.Status)
		}
		if ok {
			return &mirror.Status
		}
	default:
		// Not the status of the object that was passed in: providers modify that object and pass it
		// again, so that it would be compared with itself.
		if known, ok := m.opts.Pods.ByUID(pod.UID); ok {
			return &known.Status
		}
	}
	return &pod.Status
}

// earlierLife returns the status of an earlier run of a static pod without its end.
func earlierLife(status *v1.PodStatus) *v1.PodStatus {
	next := *status
	next.Phase, next.Reason, next.Message = "", "", ""
	next.ContainerStatuses, next.InitContainerStatuses, next.EphemeralContainerStatuses = nil, nil, nil
	return &next
}

// checkTransitions refuses a status in which a container that had ended for good is no longer
// terminated.
func (m *Manager) checkTransitions(pod *v1.Pod, old, next *v1.PodStatus) error {
	if m.opts.Logger.Enabled(context.Background(), slog.LevelDebug) {
		if err := podrules.InitMismatch(pod, old); err != nil {
			m.opts.Logger.Debug("init container statuses do not match the spec", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
		}
	}
	if err := podrules.CheckTransitions(pod, old, next); err != nil {
		return m.refuse(pod, "container", err)
	}
	return nil
}

func (m *Manager) refusePhase(pod *v1.Pod, err *PhaseError) error {
	if err == nil {
		return nil
	}
	return m.refuse(pod, "phase", err)
}

// refuse counts and logs a refusal, and gives the caller an error that names the pod.
func (m *Manager) refuse(pod *v1.Pod, kind string, err error) error {
	m.metrics.refused.WithLabelValues(kind).Inc()
	m.opts.Logger.Error("status rejected", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
	return fmt.Errorf("status: pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// stored counts a new version and requests a turn for it.
func (m *Manager) stored(old *v1.PodStatus, next *snapshot, n turnRequest) {
	m.metrics.changes.Inc()
	for _, ended := range podrules.NewlyTerminated(old, &next.status) {
		m.metrics.terminated(ended)
	}
	if m.opts.Client != nil {
		n.urgency = urgencyOf(old, &next.status, next.finished)
		m.engine.changed(n)
	}
}
