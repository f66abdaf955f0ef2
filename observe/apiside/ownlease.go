package apiside

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/statusd/statusd/internal/backoff"
)

// leasePace is how often a lease is got that may not be watched. A kubelet renews it each 10 s.
const leasePace = 10 * time.Second

// ownLease lists and watches the lease of a node. The user of a node may get its own lease but neither list nor
// watch leases; then the lease is got at a pace, and what a watch would deliver is made of that.
type ownLease struct {
	leases coordination.LeaseInterface
	name   string
}

func (l ownLease) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := l.leases.List(ctx, o)
	if !apierrors.IsForbidden(err) {
		return list, err
	}
	lease, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	list = &coordinationv1.LeaseList{}
	if lease != nil {
		list.ResourceVersion, list.Items = lease.ResourceVersion, []coordinationv1.Lease{*lease}
	}
	return list, nil
}

// get returns nil if there is no lease.
func (l ownLease) get(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := l.leases.Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, err
}

func (l ownLease) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := l.leases.Watch(ctx, o)
	if !apierrors.IsForbidden(err) {
		return w, err
	}
	lease, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &polled{ownLease: l, results: make(chan watch.Event), cancel: cancel}
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	go p.run(ctx, lease, o.ResourceVersion, initial)
	return p, nil
}

// polled is a watch that is made of gets.
type polled struct {
	ownLease
	results chan watch.Event
	cancel  context.CancelFunc
}

// Stop ends the watch.
func (p *polled) Stop() { p.cancel() }

// ResultChan is closed when the watch has ended.
func (p *polled) ResultChan() <-chan watch.Event { return p.results }

// run sends what a watch from a version would send, until ctx ends or the server does not answer.
func (p *polled) run(ctx context.Context, lease *coordinationv1.Lease, version string, initial bool) {
	defer close(p.results)
	known := version != "" && version != "0" && !initial
	for {
		switch {
		case lease != nil && lease.ResourceVersion != version:
			kind := watch.Modified
			if !known {
				kind = watch.Added
			}
			known, version = true, lease.ResourceVersion
			if !p.send(ctx, kind, lease) {
				return
			}
		case lease == nil && known:
			known, version = false, ""
			if !p.send(ctx, watch.Deleted, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: p.name}}) {
				return
			}
		}
		bookmark := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		if initial {
			bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			initial = false
		}
		if !p.send(ctx, watch.Bookmark, bookmark) || !backoff.Sleep(ctx, leasePace) {
			return
		}
		var err error
		if lease, err = p.get(ctx); err != nil {
			return // the next watch begins with a get, whose error is reported
		}
	}
}

func (p *polled) send(ctx context.Context, kind watch.EventType, lease *coordinationv1.Lease) bool {
	select {
	case <-ctx.Done():
		return false
	case p.results <- watch.Event{Type: kind, Object: lease}:
		return true
	}
}
