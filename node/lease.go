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

// keepLease renews the lease until ctx ends. keepLease starts when the Node, the owner of the lease,
// exists.
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
		renewed, sent, err := n.renewLease(ctx, lease)
		if ctx.Err() != nil {
			return
		}
		wait := interval + time.Duration(rand.Int64N(int64(interval/25+1))) // not all nodes at once
		if err != nil {
			attempt++
			wait = min(retrySchedule.Random(attempt), interval)
			if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
				lease = nil // read before the next attempt: the lease may have been changed or deleted
			}
			n.log.Warn("lease not renewed, retrying", "attempt", attempt, "err", err)
		} else {
			attempt = 0
			lease = renewed
			if first { // of nodes that start together, each goes on at a time of its own
				first, wait = false, time.Duration(rand.Int64N(int64(interval)))
			}
			wait -= time.Since(sent) // the time that a slow server takes does not make the next renewal late
			n.mu.Lock()
			n.renewed = time.Now()
			n.mu.Unlock()
		}
		if !backoff.Sleep(ctx, wait) {
			return
		}
	}
}

// renewLease writes the lease once, based on the known copy or else on a copy read from the API. Sent is when it was written.
func (n *Node) renewLease(ctx context.Context, known *coordination.Lease) (renewed *coordination.Lease, sent time.Time, err error) {
	ctx, done, err := bounded(ctx, n.o.LeaseTurn)
	if err != nil {
		return nil, sent, fmt.Errorf("node: %w", err)
	}
	defer done()
	leases := n.o.Leases.CoordinationV1().Leases(v1.NamespaceNodeLease)
	if known == nil {
		found, err := leases.Get(ctx, n.o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			sent = time.Now()
			if renewed, err = leases.Create(ctx, n.filledLease(&coordination.Lease{}), metav1.CreateOptions{}); err != nil {
				return nil, sent, fmt.Errorf("node: create lease: %w", err)
			}
			return renewed, sent, nil
		}
		if err != nil {
			return nil, sent, fmt.Errorf("node: get lease: %w", err)
		}
		n.noteHolder(found)
		known = found
	}
	sent = time.Now()
	if renewed, err = leases.Update(ctx, n.filledLease(known), metav1.UpdateOptions{}); err != nil {
		return nil, sent, fmt.Errorf("node: renew lease: %w", err)
	}
	return renewed, sent, nil
}

// filledLease returns a copy of a lease with this node as holder and the current time.
func (n *Node) filledLease(lease *coordination.Lease) *coordination.Lease {
	lease = lease.DeepCopy()
	lease.Name, lease.Namespace = n.o.Name, v1.NamespaceNodeLease
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.o.Name, UID: n.UID()}}
	if n.o.Instance != "" {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, instanceAnnotation, n.o.Instance)
	}
	holder, seconds, now := n.o.Name, int32(n.o.Lease/time.Second), metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &holder, &seconds, &now
	return lease
}
