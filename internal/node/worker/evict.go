package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Eviction ends a pod because of the node and not because of the pod: under pressure, or when
// the machine shuts down.
type Eviction struct {
	// Grace bounds how long the pod may take to end; its own grace period counts if it is shorter.
	Grace time.Duration
	// Reason and Message go to the pod's status, which becomes Failed.
	Reason, Message string
	// Condition, if set, is the DisruptionTarget of the pod.
	Condition *v1.PodCondition
	// Hold only stops the containers: the pod keeps its phase, and continues after [Workers.Resume] or
	// with the next process. It is for static pods, which nothing would create again.
	Hold bool
}

// Evict ends a pod, and reports whether the pod is known here and has not been evicted before.
func (w *Workers) Evict(uid types.UID, e Eviction) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, known := w.pods[uid]
	if !known || p.inbox.evicted != nil {
		return false
	}
	p.inbox.evicted, p.inbox.evictedAt = &e, time.Now()
	p.inbox.abandonStart()
	p.poke()
	return true
}

// Resume continues a pod that was evicted with Hold.
func (w *Workers) Resume(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, known := w.pods[uid]; known && p.inbox.evicted != nil && p.inbox.evicted.Hold {
		p.inbox.evicted = nil
		p.poke()
	}
}

// Stopped returns a channel that is closed once nothing of the pod runs: it has ended, is held and
// has stopped, or is not known here.
func (w *Workers) Stopped(uid types.UID) <-chan struct{} {
	done := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	p, known := w.pods[uid]
	if !known || p.inbox.stage >= stopped {
		close(done)
		return done
	}
	p.inbox.waiting = append(p.inbox.waiting, done)
	p.poke()
	return done
}

// notifyStopped ends the waits for the end of the pod.
func (p *worker) notifyStopped() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.inbox.releaseWaiting()
}

// releaseWaiting closes the channels of the waiting callers. The caller holds Workers.mu.
func (m *inbox) releaseWaiting() {
	for _, done := range m.waiting {
		close(done)
	}
	m.waiting = nil
}

// hold is the turn of a pod whose containers are kept from running.
func (p *worker) hold(ctx context.Context, in *input, s *observation, now time.Time) (next time.Time) {
	p.abandonPostStart()
	p.report(s, now, false)
	if len(allAlive(s.found.Containers)) == 0 {
		p.notifyStopped()
		return time.Time{}
	}
	p.stopAll(in.pod, s.found.Containers, in.evictedAt.Add(evictionGrace(in)))
	return p.proceed(ctx, s, now)
}

// evictionGrace is how long an evicted pod may take.
func evictionGrace(in *input) time.Duration {
	return max(minimumGrace, min(in.evicted.Grace, podGrace(in.pod)))
}
