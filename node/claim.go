package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// instanceAnnotation of a lease is the [Options.Instance] of the program that renews it. The holder of the lease is the name
	// of the node, as with a kubelet.
	instanceAnnotation = "statusd/instance"
	// eventNameInUse is the reason of the event that another machine uses the name of the Node.
	eventNameInUse = "NodeNameInUse"
	// claimRetry is the longest pause between looks at a Node that is not claimed.
	claimRetry = 2 * time.Second
	// maxRefusals is how often the API server may refuse to show the lease before the Node is used without that.
	maxRefusals = 5
)

var errNameInUse = errors.New("the name of the node is in use by another kubelet or agent")

// claim is what is known of the lease of another program.
type claim struct {
	renewed metav1.MicroTime // by the other program, when last looked at
	since   time.Time        // when that renewal was first seen
	refused int              // how often the API server has refused to show the lease
}

// Claimed returns a channel that is closed when the Node is this program's: see [Options.Instance]. The pods of the Node belong to
// the machine that had the name before.
func (n *Node) Claimed() <-chan struct{} { return n.claimed }

func (n *Node) isClaimed() bool {
	select {
	case <-n.claimed:
		return true
	default:
		return false
	}
}

// claim returns nil if no other program keeps the Node. A program with the name of a live node would otherwise report all pods
// of that node as pods that wait, and delete the pods that are in deletion: the lease of another program must have stayed the same for half
// of its duration, in which a kubelet renews it twice.
func (n *Node) claim(ctx context.Context, now time.Time) error {
	if n.isClaimed() {
		return nil
	}
	if n.o.Instance != "" && !n.isKnown() {
		other, err := n.otherLease(ctx)
		if err != nil {
			return err
		}
		if other != nil {
			if n.other.since.IsZero() || !n.other.renewed.Equal(other.Spec.RenewTime) {
				n.other.renewed, n.other.since = *other.Spec.RenewTime, now
			}
			if now.Sub(n.other.since) < n.lasts(other)/2 {
				n.reportRival("another kubelet or agent renews the lease of this Node, and no pod of the Node is started here until that ends: give this machine another nodeName, or stop the other one")
				return fmt.Errorf("node: %s: %w, which renewed its lease at %s", n.o.Name, errNameInUse, other.Spec.RenewTime.UTC().Format(time.RFC3339))
			}
			n.log.Info("the lease of the Node is not renewed any more, the Node is taken over")
		}
	}
	n.rival.Store(false)
	close(n.claimed)
	return nil
}

func (n *Node) lasts(lease *coordination.Lease) time.Duration {
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return n.o.Lease
}

// otherLease returns the lease of the Node if another program may have renewed it, and nil otherwise.
func (n *Node) otherLease(ctx context.Context) (*coordination.Lease, error) {
	node, err := n.get(ctx, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ctx, done, err := bounded(ctx, n.o.LeaseTurn)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	defer done()
	lease, err := n.o.Leases.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(ctx, n.o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err) && n.other.refused >= maxRefusals: // a program without the right has to work without it
		return nil, nil
	case apierrors.IsForbidden(err): // also of a server that was just started
		n.other.refused++
		return nil, fmt.Errorf("node: get lease: %w", err)
	case err != nil:
		return nil, fmt.Errorf("node: get lease: %w", err)
	case lease.Spec.RenewTime == nil || n.isOwn(node, lease):
		return nil, nil
	}
	return lease, nil
}

// isOwn reports whether this program, or its predecessor on this machine, was the last to renew the lease.
func (n *Node) isOwn(node *v1.Node, lease *coordination.Lease) bool {
	info := &node.Status.NodeInfo
	if !strings.Contains(info.KubeletVersion, versionInfix) {
		return false // of a kubelet, which leaves the annotation of a lease in place
	}
	if instance := lease.Annotations[instanceAnnotation]; instance != "" && instance != n.o.Instance {
		return info.BootID == n.reading.BootID && n.o.InstanceEnded != nil && n.o.InstanceEnded(instance)
	}
	// A clone of this machine has the same instance, and earlier versions write none; the own lease was last renewed in this boot of the machine,
	// or before it.
	return info.BootID == n.reading.BootID || lease.Spec.RenewTime.Time.Before(booted(time.Now()))
}

// booted returns when the machine was started, or now if that is unknown.
func booted(now time.Time) time.Time {
	text, err := os.ReadFile("/proc/uptime")
	var seconds float64
	if _, scanErr := fmt.Sscan(string(text), &seconds); err != nil || scanErr != nil {
		return now
	}
	return now.Add(-time.Duration(seconds * float64(time.Second)))
}

// noteHolder reports another program that renews the lease beside this one.
func (n *Node) noteHolder(lease *coordination.Lease) {
	if n.o.Instance == "" || n.LeaseRenewed().IsZero() {
		return
	}
	if instance := lease.Annotations[instanceAnnotation]; instance != "" && instance != n.o.Instance {
		n.reportRival("another agent renews the lease of this Node too, and each pod of the Node may run twice: give one of the machines another nodeName")
	}
}

// reportRival logs and sends an event once.
func (n *Node) reportRival(message string) {
	if n.rival.Swap(true) {
		return
	}
	n.log.Warn("the name of the node is in use by another program", "problem", message)
	n.o.Event(v1.EventTypeWarning, eventNameInUse, message)
}
