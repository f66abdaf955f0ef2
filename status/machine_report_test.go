package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

func (m *machine) reportRunning(choices [3]int) {
	if s := m.pick(choices[0], alive); s != nil {
		m.report(s, running(s.pod, choices[1]%2 == 0))
	}
}

// reportInPart reports as agents of others do: what they know, and as they know it.
func (m *machine) reportInPart(choices [3]int) {
	s := m.pick(choices[0], alive)
	if s == nil {
		return
	}
	status := running(s.pod, choices[1]%2 == 0)
	switch choices[2] % 7 {
	case 0:
		status.PodIPs = nil
	case 1:
		status.PodIP = ""
	case 2:
		status.PodIP = "10.0.0.2"
	case 3:
		status.Conditions = nil
	case 4:
		status.HostIPs = []v1.HostIP{{IP: "10.1.0.1"}} // which the server refuses
	case 5:
		status.QOSClass = v1.PodQOSGuaranteed // and this too
	case 6:
		m.reports++
		status.Message = fmt.Sprint("report ", m.reports)
		pod := m.known(s)
		pod.Status = status
		_, err := m.manager.SetPodStatus(pod, pod.Status)
		m.noteReport(s, &status, err)
		return
	}
	m.report(s, status)
}

// reportDetail reports the cached status again, with another sandbox, or of a pod that a user has deleted since. If nothing is wrong,
// the API has it after the wait.
func (m *machine) reportDetail(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return alive(s) && s.reported > 0 && m.owns(s) })
	if s == nil {
		return
	}
	status, ok := m.manager.GetPodStatus(s.pod.UID)
	if !ok {
		return
	}
	if choices[1]%3 > 0 {
		m.details++
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReadyToStartContainers })
		status.Conditions = append(status.Conditions, v1.PodCondition{
			Type: v1.PodReadyToStartContainers, Status: []v1.ConditionStatus{"", v1.ConditionTrue, v1.ConditionFalse}[choices[1]%3], Message: fmt.Sprint("detail ", m.details),
		})
	}
	wrong := m.fault != nil || m.hooked || m.lag || m.recentlyRestored() || m.isUnsent(s)
	_, err := m.manager.SetPodStatus(m.known(s), status)
	must(err)
	m.noteVersion(s)
	if choices[2]%2 == 0 && !wrong {
		wait := waitForDetails(m.known(s)).Limit
		pass(wait)
		if m.isUnsent(s) {
			m.violated("details: not in the API after %v: %+v", wait, m.manager.Pending())
		}
	}
}

// isUnsent reports whether the API server has not accepted the newest status of a pod.
func (m *machine) isUnsent(s *subject) bool {
	return slices.ContainsFunc(m.manager.Pending(), func(p Pending) bool { return p.UID == s.pod.UID && p.Version > p.Accepted })
}

func (m *machine) endPod(choices [3]int) {
	s := m.pick(choices[0], alive)
	if s == nil {
		return
	}
	m.edit(func() {
		s.ended = true
		s.running = choices[1]%2 == 0
	})
	if s.running && choices[2]%2 == 0 && m.mayEvictBare(s) {
		m.report(s, evictedBare())
		return
	}
	if s.running {
		m.report(s, evicted(s.pod))
		return
	}
	m.report(s, ended(s.pod, int32(choices[2]%4)))
}

// evicted is the status of a pod that has failed while its container still runs.
func evicted(pod *v1.Pod) v1.PodStatus {
	status := running(pod, true)
	status.Phase, status.Reason = v1.PodFailed, "Evicted"
	return status
}

func (m *machine) stopContainers(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return s.ended && s.running })
	if s == nil {
		return
	}
	m.edit(func() { s.running = false })
	m.report(s, ended(s.pod, 137))
}

// known is the pod as the node knows it.
func (m *machine) known(s *subject) *v1.Pod {
	pod := s.pod.DeepCopy()
	if s.deleting && pod.DeletionTimestamp == nil {
		userDeletes(pod)
	}
	return pod
}

func (m *machine) report(s *subject, status v1.PodStatus) {
	m.reports++
	status.Message = fmt.Sprint("report ", m.reports)
	_, err := m.manager.SetPodStatus(m.known(s), status)
	m.noteReport(s, &status, err)
}

// noteReport keeps what the manager has acknowledged.
func (m *machine) noteReport(s *subject, status *v1.PodStatus, err error) {
	_, withheld := errors.AsType[*WithheldError](err)
	if err == nil || withheld || lostEnd(err) {
		m.edit(func() {
			s.reported, s.flips, s.kept = m.reports, 0, s.ended && !s.static && (s.kept || !lostEnd(err))
			if len(status.ContainerStatuses) > 0 {
				s.ready = status.ContainerStatuses[0].Ready
			}
		})
	}
	m.noteVersion(s)
	m.noteEnd(s)
}

// noteEnd keeps how an acknowledged end has ended the pod. Later reports may add the exit code of the container, and change nothing.
func (m *machine) noteEnd(s *subject) {
	cached := m.manager.cache.load(s.pod.UID)
	if !s.kept || cached == nil || s.end.known {
		return
	}
	code, known := exitCode(&cached.status)
	s.end = end{cmp.Or(s.end.phase, cached.status.Phase), code, known}
}

func (m *machine) flip(choices [3]int) {
	s := m.pick(choices[0], alive)
	if s == nil {
		return
	}
	ready := choices[1]%2 == 0
	if err := m.manager.SetContainerReadiness(s.pod.UID, s.containerID(), ready); err == nil {
		m.edit(func() { s.ready, s.flips = ready, s.flips+1 })
	}
	m.noteVersion(s)
}

func (m *machine) finish(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return s.ended && !s.running && !s.finished })
	if s == nil {
		return
	}
	m.edit(func() { s.finished, s.unreclaimed = true, choices[1]%3 == 0 })
	m.terminate(s)
}

// wholeEnd is the way of most pods: deleted by a user, stopped, finished.
func (m *machine) wholeEnd(choices [3]int) {
	s := m.pick(choices[0], func(s *subject) bool { return alive(s) && !s.static && !s.deleting && m.owns(s) })
	if s == nil {
		return
	}
	m.edit(func() { s.deleting, s.ended, s.running = true, true, false })
	m.api.Change(s.pod, userDeletes)
	m.report(s, ended(s.pod, int32(choices[2]%4)))
	m.edit(func() { s.finished, s.unreclaimed = true, choices[1]%3 == 0 })
	m.terminate(s)
}

func (m *machine) reclaim(choices [3]int) {
	if s := m.pick(choices[0], func(s *subject) bool { return s.unreclaimed }); s != nil {
		m.edit(func() { s.unreclaimed = false })
	}
}

// reportAgain is what a worker does that has just found its pod.
func (m *machine) reportAgain(s *subject) {
	if pod := m.api.Pod(s.pod); pod != nil && !s.static && pod.UID == s.pod.UID {
		m.edit(func() { s.pod = pod })
	}
	switch {
	case s.finished:
		m.terminate(s)
	case s.ended && !s.running:
		m.edit(func() {
			if _, older := m.revived[s.pod.UID]; older { // which is what the worker is told
				m.revived[s.pod.UID] = append(m.revived[s.pod.UID], m.reports+1)
			}
		})
		m.report(s, m.lastEnd(s))
	case s.ended:
		m.report(s, evicted(s.pod))
	case s.reported > 0:
		m.report(s, running(s.pod, true))
	}
}

// lastEnd is how the runtime says the pod ended: as it did before the crash.
func (m *machine) lastEnd(s *subject) v1.PodStatus {
	if status, ok := m.manager.GetPodStatus(s.pod.UID); ok && hasEnded(&status) {
		return status
	}
	if hasEnded(&s.pod.Status) {
		return s.pod.Status
	}
	return ended(s.pod, 1)
}

// hasEnded reports whether a status has the end of the pod and of its container.
func hasEnded(status *v1.PodStatus) bool {
	return podstatus.IsTerminal(status.Phase) && len(status.ContainerStatuses) > 0 && !anyRuns(status)
}

// flush asks for everything to be delivered and does not wait. If that is said to be done, it is.
func (m *machine) flush([3]int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := m.manager.Flush(ctx); err == nil {
		m.checkFlushed()
	}
}

// faults are what may be wrong with the way to the server; some answer only half of the
// requests so.
var faults = slices.Concat(outages, troubles, singled)

var outages = []func(s statustest.Request, seq int) error{
	func(statustest.Request, int) error { return apierrors.NewInternalError(errors.New("boom")) },
	func(statustest.Request, int) error { return statustest.ErrHang },
	late,
	func(statustest.Request, int) error { return statustest.ErrRefused },
	func(s statustest.Request, _ int) error {
		return statustest.LoadBalancerWithoutBackend(context.Background(), s)
	},
	func(s statustest.Request, _ int) error { return statustest.ServerJustStarted(context.Background(), s) },
	onDelete(statustest.DeniedByWebhook(409, metav1.StatusReasonConflict)),
	onDelete(statustest.DeniedByWebhook(403, metav1.StatusReasonForbidden)),
	onDelete(apierrors.NewInternalError(errors.New("failed calling webhook"))),
}

var troubles = []func(s statustest.Request, seq int) error{
	half(func(statustest.Request) error { return apierrors.NewServiceUnavailable("not now") }),
	half(func(statustest.Request) error { return statustest.Throttled(2) }),
	half(func(s statustest.Request) error { return statustest.NotFromServer(s) }),
	half(func(s statustest.Request) error {
		if s.Verb != "PATCH" {
			return nil
		}
		return apierrors.NewConflict(podResource, s.PodName(), errors.New("the object has been modified"))
	}),
	func(s statustest.Request, _ int) error {
		return apierrors.NewForbidden(podResource, s.PodName(), errors.New("RBAC: clusterrole not found"))
	},
	func(s statustest.Request, _ int) error { return statustest.Unavailable(s, 86400) },
}

// late is a server that answers no write, and carries some out after the manager has given them up. Writes without a resource
// version, of a pod that another writer is busy with, are not carried out: a newer write does not stop them.
func late(s statustest.Request, seq int) error {
	if s.Verb == "PATCH" && strings.Contains(s.Body, "resourceVersion") {
		return statustest.Late(time.Duration(seq*7919%59_000) * time.Millisecond)
	}
	return statustest.ErrHang
}

func half(fault func(statustest.Request) error) func(statustest.Request, int) error {
	return func(s statustest.Request, seq int) error {
		if seq%2 == 0 {
			return fault(s)
		}
		return nil
	}
}

func onDelete(err error) func(statustest.Request, int) error {
	return func(s statustest.Request, _ int) error {
		if s.Verb == "DELETE" {
			return err
		}
		return nil
	}
}

func (m *machine) startFault(choices [3]int) {
	which := choices[0] % len(faults)
	m.troubled = m.troubled || which >= len(outages)
	m.edit(func() {
		if m.fault == nil {
			m.faultSince = time.Now()
		}
		m.fault, m.single = faults[which], which >= len(outages)+len(troubles)
	})
}

// endFault makes the server well again. If it was not in the minute after a restore, it takes a minute from now until that
// is noticed. An outage leaves nothing behind for which a pod would have to wait.
func (m *machine) endFault() {
	m.edit(func() {
		if m.fault != nil && !m.restored.IsZero() && m.faultSince.Before(m.restored.Add(restoredWithin)) {
			m.restored = time.Now()
		}
		if m.troubled {
			m.healed = time.Now()
		}
		m.fault, m.troubled = nil, false
	})
}
