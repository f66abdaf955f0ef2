package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/backoff"
)

// keepLease renews the lease until ctx ends. It begins when the Node exists, which owns
// the lease; without a Node it has no meaning.
func (n *Node) keepLease(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-n.registered:
	}
	interval := n.o.Lease / 4
	var lease *coordination.Lease // what the API has, as far as we know
	first := true
	for attempt := 0; ; {
		if errors.Is(n.Err(), ErrDeleted) { // without a Node a lease has no owner
			lease = nil
			if !backoff.Sleep(ctx, interval) {
				return
			}
			continue
		}
		renewed, err := n.renewLease(ctx, lease)
		if ctx.Err() != nil {
			return
		}
		wait := interval + time.Duration(rand.Int64N(int64(interval/25+1))) // not all nodes at once
		if err != nil {
			attempt++
			wait = min(retrySchedule.Random(attempt), interval)
			lease = nil // look before the next try: someone may have changed or deleted it
			n.log.Warn("lease not renewed, retrying", "attempt", attempt, "err", err)
		} else {
			attempt = 0
			lease = renewed
			if first { // of nodes that start together, each goes on at a time of its own
				first, wait = false, time.Duration(rand.Int64N(int64(interval)))
			}
			n.mu.Lock()
			n.renewed = time.Now()
			n.mu.Unlock()
		}
		if !backoff.Sleep(ctx, wait) {
			return
		}
	}
}

// renewLease writes the lease once, on the copy that is known or else on the API's own.
func (n *Node) renewLease(ctx context.Context, known *coordination.Lease) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	leases := n.o.Leases.CoordinationV1().Leases(v1.NamespaceNodeLease)
	if known == nil {
		found, err := leases.Get(ctx, n.o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			created, err := leases.Create(ctx, n.filledLease(&coordination.Lease{}), metav1.CreateOptions{})
			if err != nil {
				return nil, fmt.Errorf("node: create lease: %w", err)
			}
			return created, nil
		}
		if err != nil {
			return nil, fmt.Errorf("node: get lease: %w", err)
		}
		known = found
	}
	updated, err := leases.Update(ctx, n.filledLease(known), metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("node: renew lease: %w", err)
	}
	return updated, nil
}

// filledLease is a copy of a lease with our part said: it is ours, and it is now.
func (n *Node) filledLease(lease *coordination.Lease) *coordination.Lease {
	lease = lease.DeepCopy()
	lease.Name, lease.Namespace = n.o.Name, v1.NamespaceNodeLease
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.o.Name, UID: n.UID()}}
	holder, seconds, now := n.o.Name, int32(n.o.Lease/time.Second), metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &holder, &seconds, &now
	return lease
}
