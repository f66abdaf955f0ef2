package status

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
)

// This file decides whether a pod is gone from the API, for every kind of request. A wrong decision
// loses data: a pod that is gone is not written any more, and its final status is deleted from the
// journal.
//
// No response to a request for the pod itself proves that the pod is gone:
//
//   - A 404 whose body is not a Kubernetes Status comes from a proxy before the server, such as a
//     load balancer without a backend, and proves nothing about the pod.
//   - A server that has just started answers a node's DELETE with 404, and its GET with 403,
//     until the caches of NodeRestriction and of the Node authorizer are filled.
//   - The Node authorizer always answers 403 for a pod that does not exist, and NodeRestriction for
//     a pod whose name was taken by a pod of another node, whatever the UID.
//   - A webhook may answer with any code: a 409 to a DELETE need not be about the UID.
//
// A pod is proven gone if its UID is missing from a list of the node's pods that was read from
// storage, or if a pod of the same name has another UID.

// Finder is a Client that can look up one pod of the node in the server's storage. With any other
// Client, the manager calls List instead. The client of [NewClient] is a Finder.
type Finder interface {
	// FindPod lists the pods of this node with this name and returns the pod, or nil. The list must
	// be read from storage, not from the server's cache.
	FindPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
}

// lagBackoff spaces the tries of a request that a server which has just started answers wrongly.
var lagBackoff = backoff.Schedule{First: 250 * time.Millisecond, Limit: 10 * time.Second}

// fromServer reports whether an error is the answer of a Kubernetes server, and not of
// something before it.
func fromServer(err error) bool {
	_, foreign := apierrors.StatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	return !foreign
}

// hintsGone reports whether an answer to a request for a pod may mean that it is gone.
func hintsGone(err error) bool {
	return fromServer(err) && (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err))
}

// find looks for the pod in what the server has stored.
func (t *turn) find(ctx context.Context, p *plan) (*v1.Pod, error) {
	return request(ctx, t, "list", func(ctx context.Context) (*v1.Pod, error) {
		if finder, ok := t.m.opts.Client.(Finder); ok {
			return finder.FindPod(ctx, p.namespace, p.name)
		}
		pods, err := t.m.opts.Client.List(ctx)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if pods[i].Namespace == p.namespace && pods[i].Name == p.name {
				return &pods[i], nil
			}
		}
		return nil, nil
	})
}

// resolve decides what an answer that hints at the end of the pod means. It returns the pod
// if it is there after all. If it is gone, or that cannot be found out, the turn is over; the error
// why, if there is one, is then what Pending shows.
func (t *turn) resolve(ctx context.Context, p *plan, hint, why error) (pod *v1.Pod, there bool) {
	pod, err := t.find(ctx, p)
	switch {
	case err != nil:
		t.retry(p, fmt.Errorf("%w; and whether the pod is gone could not be found out: %w", hint, err))
		return nil, false
	case pod == nil || pod.UID != p.target:
		t.gone(p, why)
		return nil, false
	}
	return pod, true
}

// denialsPerList is how many denials of a pod it takes until a list is asked for again.
const denialsPerList = 30

// denied handles a 403 to a write. It mostly means that permission is missing; but it is also the
// only answer that a node gets for a pod whose name was taken by a pod of another node. So a list is asked for
// at the first denial, and then rarely.
func (t *turn) denied(ctx context.Context, p *plan, err error) {
	if t.m.cache.attempts(p.uid)%denialsPerList == 0 {
		if _, there := t.resolve(ctx, p, err, err); !there {
			return
		}
	}
	t.retry(p, err)
}

// gone records that the API server does not have the pod, so that it is not asked again before
// goneBackoff expires or the pod is observed. That must be proven.
func (t *turn) gone(p *plan, err error) {
	t.m.opts.Logger.Info("pod not found in the API", "pod", p.podName(), "uid", p.target)
	if t.m.unobserved(p) {
		t.m.gone.add(p.uid, p.snapshot, time.Now())
		t.m.forget(p.uid)
		return
	}
	t.m.cache.endDecision(p.uid)
	t.wait = t.m.cache.failed(p.uid, err, waitGone, goneBackoff, time.Now())
	t.again, t.urgency = p.version > p.accepted, background
	t.m.endGone(p)
}

// goneMemory holds the pods that the API server has proven not to have, with their last reports. Batch
// systems list their jobs for long after the pods are gone: such reports cost nothing. The zero value
// is ready.
type goneMemory struct {
	mu    sync.Mutex
	last  map[types.UID]gonePod
	order []types.UID // the oldest first
}

type gonePod struct {
	*snapshot
	until time.Time
}

const (
	goneMemoryTime = 10 * time.Minute
	goneMemorySize = 1024
)

func (g *goneMemory) add(uid types.UID, last *snapshot, now time.Time) {
	g.expire(now)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = make(map[types.UID]gonePod)
	}
	if _, known := g.last[uid]; !known {
		g.order = append(g.order, uid)
	}
	g.last[uid] = gonePod{last, now.Add(goneMemoryTime)}
	if len(g.order) > goneMemorySize {
		delete(g.last, g.order[0])
		g.order = g.order[1:]
	}
}

// get returns the last report of a pod that is gone, nil if the pod is not known to be.
func (g *goneMemory) get(uid types.UID, now time.Time) *snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gone, known := g.last[uid]; known && now.Before(gone.until) {
		return gone.snapshot
	}
	return nil
}

// forget makes reports of a pod count again: it was observed.
func (g *goneMemory) forget(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.last[uid]; known {
		delete(g.last, uid)
		g.order = slices.DeleteFunc(g.order, func(other types.UID) bool { return other == uid })
	}
}

func (g *goneMemory) expire(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.order) > 0 && !now.Before(g.last[g.order[0]].until) {
		delete(g.last, g.order[0])
		g.order = g.order[1:]
	}
	if len(g.order) == 0 {
		g.last, g.order = nil, nil // gives the memory back
	}
}

// unobserved reports whether a manager with a table of its own does not have the pod there. If the
// API does not have it either, it was deleted before its last report, and no event will come
// that ends its life here.
func (m *Manager) unobserved(p *plan) bool {
	if m.table == nil || p.static {
		return false
	}
	_, observed := m.table.ByUID(p.uid)
	return !observed
}

// deleted ends the life of a pod whose DELETE was answered: it is forgotten if it is gone.
func (t *turn) deleted(ctx context.Context, p *plan, err error) {
	if err != nil && hintsGone(err) && (!apierrors.IsForbidden(err) || t.m.cache.attempts(p.uid)%denialsPerList == 0) {
		pod, findErr := t.find(ctx, p)
		switch {
		case findErr != nil:
			err = fmt.Errorf("%w; and whether the pod is gone could not be found out: %w", err, findErr)
		case pod == nil || pod.UID != p.target:
			err = nil // gone already, or its name is another pod's by now
		case apierrors.IsNotFound(err):
			// Its admission lags behind, for as long as a server takes to start.
			t.retryOn(lagBackoff, p, fmt.Errorf("the API server does not find the pod, although it is there: %w", err))
			return
		}
	}
	if err != nil {
		t.retry(p, err)
		return
	}
	t.m.opts.Logger.Info("deleted finished pod", "pod", p.podName(), "uid", p.uid)
	if p.watched != nil && len(p.watched.Finalizers) > 0 {
		t.m.cache.leave(p.uid)
		return
	}
	t.m.forget(p.uid)
}
