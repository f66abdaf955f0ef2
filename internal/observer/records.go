package observer

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/podstatus"
)

// chronicle is what a history needs of the store.
type chronicle interface {
	Changed(podstatus.Change)
	Accepted(uid types.UID, version uint64, at time.Time)
	Removed(uid types.UID, at time.Time)
	Add(pod history.Ref, r history.Record)
}

// recorder makes the history of the observations. It belongs to the goroutine that audits.
type recorder struct {
	store chronicle
	pods  map[types.UID]*recorded
}

// recorded is how far the history of a pod is.
type recorded struct {
	subject
	status  *v1.PodStatus
	version uint64
	// since is when version was observed; behind: the API does not have it yet.
	since    time.Time
	behind   bool
	deleting bool
}

func newRecorder(store chronicle) *recorder {
	return &recorder{store: store, pods: map[types.UID]*recorded{}}
}

// pod follows one pod and reports whether something about it is new. A status is a change when the
// kubelet has decided it, and is accepted when the API has it too.
func (r *recorder) pod(uid types.UID, s subject, at time.Time) bool {
	known, ok := r.pods[uid]
	if ok && known.subject == s {
		return false
	}
	if !ok {
		known = &recorded{}
		r.pods[uid] = known
	}
	known.subject = s
	pod, status := s.pod(), s.decided()
	if !ok || len(history.Diff(known.status, status)) > 0 {
		change := podstatus.Change{
			UID: uid, Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp.Time,
			Old: known.status, New: status, First: !ok, Version: known.version + 1, At: at, By: "observe",
		}
		if change.First {
			change.Old = &v1.PodStatus{}
		}
		known.version++
		known.since, known.behind = at, true
		r.store.Changed(change)
	}
	known.status = status
	if known.behind && s.api != nil && len(history.Diff(&s.api.Status, status)) == 0 {
		known.behind = false
		r.store.Accepted(uid, known.version, at)
	}
	r.deletion(uid, known, pod, at)
	return true
}

// delivery is how far the API knows what the kubelet has decided.
func (r *recorder) delivery(uid types.UID) podstatus.Delivery {
	known := r.pods[uid]
	d := podstatus.Delivery{Version: known.version, Accepted: known.version}
	if known.behind {
		d.Accepted, d.Since = known.version-1, known.since
	}
	return d
}

// deletion records that a pod is being deleted, once.
func (r *recorder) deletion(uid types.UID, known *recorded, pod *v1.Pod, at time.Time) {
	if pod.DeletionTimestamp == nil || known.deleting {
		return
	}
	known.deleting = true
	record := history.Record{Observed: at, Kind: history.KindDeletion, To: "ending", Reason: "Deleted", Message: "it is deleted in the API"}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		record.Message += fmt.Sprintf(", with a grace period of %d s", *grace)
	}
	r.store.Add(history.Ref{UID: uid, Namespace: pod.Namespace, Name: pod.Name}, record)
}

// removed forgets the pods that neither the API nor the kubelet has any more, and returns them.
func (r *recorder) removed(v *view, at time.Time) (gone []types.UID) {
	for uid := range r.pods {
		if _, ok := v.pods[uid]; !ok {
			delete(r.pods, uid)
			r.store.Removed(uid, at)
			gone = append(gone, uid)
		}
	}
	return gone
}

// step records the outcome of a difference. A difference that was never drift leaves no record: each change
// of a status causes a short one.
func (r *recorder) step(s *step, at time.Time) {
	record := history.Record{Observed: at, Kind: history.KindDrift, Subject: string(s.Kind), Container: s.Container, From: string(s.from), To: string(s.to)}
	if s.Subject != "" {
		record.Subject += " " + s.Subject
	}
	switch {
	case s.to == drifted:
		record.Reason, record.Message = string(s.Certainty), strings.TrimSuffix(s.Message, ".")+"; first seen "+s.Seen.UTC().Format(time.RFC3339)
	case s.to == resolved && s.from == drifted:
		record.Message = fmt.Sprintf("after %s: %s", text.Span(at.Sub(s.Seen)), s.Message)
	default:
		return
	}
	r.store.Add(refOf(s.Pod), record)
}

// refOf names a pod in the history.
func refOf(pod audit.Ref) history.Ref {
	return history.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
}
