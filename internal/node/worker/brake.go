package worker

import (
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/text"
)

// rejections are the pauses after the rejections of pods of one controller.
var rejections = backoff.Schedule{First: time.Second, Limit: 5 * time.Minute}

// brakeMemory is how long the rejections of a controller count after the last of them.
const brakeMemory = 15 * time.Minute

// brake spaces out the rejections of pods that one controller owns. A ReplicaSet replaces a failed
// pod at once and without back-off: without the brake, a pod that the node rejects becomes hundreds of
// failed ones within seconds. A pod whose rejection is put off stays Pending, and may fit meanwhile.
type brake struct {
	mu     sync.Mutex // guards owners
	owners map[types.UID]rejected
}

// rejected is the record of one controller.
type rejected struct {
	count int
	last  time.Time // when the newest rejection is due
}

// due is when the next rejection of the owner may be reported, and counts that rejection.
func (b *brake) due(owner types.UID, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.owners, func(_ types.UID, r rejected) bool { return now.Sub(r.last) > brakeMemory })
	r, at := b.owners[owner], now
	if r.count > 0 {
		if at = r.last.Add(rejections.Wait(r.count, 0)); at.Before(now) {
			at = now
		}
	}
	if b.owners == nil {
		b.owners = map[types.UID]rejected{}
	}
	b.owners[owner] = rejected{count: r.count + 1, last: at}
	return at
}

// braked is when the rejection of the pod may be reported.
func (p *worker) braked(pod *v1.Pod, r *fit.Rejection, now time.Time) time.Time {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return now
	}
	if p.rejectAt.IsZero() {
		p.rejectAt = p.w.brake.due(owner.UID, now)
		if wait := p.rejectAt.Sub(now); wait > 0 {
			p.log.Info("rejection put off: pods of the same owner were rejected before", "reason", r.Reason, "message", r.Message, "for", wait)
			p.event(pod, "", v1.EventTypeWarning, r.Reason, fmt.Sprintf("%s; pods of %s %s were rejected before: this one waits for room and is rejected in %s",
				r.Message, owner.Kind, owner.Name, text.Span(wait)))
		}
	}
	return p.rejectAt
}
