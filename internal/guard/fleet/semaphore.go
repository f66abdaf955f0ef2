package fleet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/guard"
)

const (
	// Duration is how long a slot counts that is not released.
	Duration = 3 * time.Minute
	// maxSkew is how far the clocks of two nodes may be apart.
	maxSkew = 15 * time.Minute
	// percent of the nodes may restart their kubelets at once, and one node at least.
	percent = 2
	// slotName and a number are the name of a slot's Lease.
	slotName = "statusd-restart-"
	// reasonAnnotation of a slot's Lease is why its holder restarts.
	reasonAnnotation = "statusd/reason"
)

// Leases are those of the namespace of the slots. The clients of client-go implement it.
type Leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Options configure a [Semaphore]. All but Now are required.
type Options struct {
	Leases Leases
	// Node is the name of this node.
	Node string
	// Nodes is how many nodes the cluster has; an error counts as one.
	Nodes func(ctx context.Context) (int, error)
	// Now is time.Now if nil.
	Now func() time.Time
}

// Semaphore is a [guard.Fleet]. It is safe for concurrent use.
type Semaphore struct {
	o Options

	mu   sync.Mutex // guards what follows, and one request follows the other
	slot string     // this node's slot; empty: none
	seen map[string]version
}

// version is a version of a slot's Lease that another node wrote, and when it was first seen here.
type version struct {
	name  string
	first time.Time
}

// New makes a semaphore. New sends no request.
func New(o Options) *Semaphore {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Semaphore{o: o, seen: map[string]version{}}
}

// Count counts the nodes of a cluster by their leases, with one small request.
func Count(client kubernetes.Interface) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		list, err := client.CoordinationV1().Leases(v1.NamespaceNodeLease).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return 0, err
		}
		n := len(list.Items)
		if more := list.RemainingItemCount; more != nil {
			n += int(*more)
		}
		return n, nil
	}
}

// Slots is how many of a number of nodes may restart their kubelets at once.
func Slots(nodes int) int { return max(1, nodes*percent/100) }

// Acquire implements [guard.Fleet].
func (s *Semaphore) Acquire(ctx context.Context, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes, err := s.o.Nodes(ctx)
	if err != nil {
		nodes = 1 // fewer slots are safe
	}
	slots := Slots(nodes)
	var holders []string
	first := int(hash(s.o.Node) % uint32(slots)) // nodes begin at different slots
	for i := range slots {
		name := fmt.Sprintf("%s%d", slotName, (first+i)%slots)
		holder, err := s.take(ctx, name, reason)
		if err != nil {
			return fmt.Errorf("fleet: %w", err)
		}
		if holder == "" {
			s.slot = name
			return nil
		}
		holders = append(holders, holder)
	}
	slices.Sort(holders)
	const named = 5
	text := strings.Join(holders[:min(len(holders), named)], ", ")
	if len(holders) > named {
		text += fmt.Sprintf(" and %d more", len(holders)-named)
	}
	return fmt.Errorf("%w: %s (%d at a time)", guard.ErrFleetBusy, text, slots)
}

// take takes one slot, or returns its holder.
func (s *Semaphore) take(ctx context.Context, name, reason string) (holder string, err error) {
	lease, err := s.o.Leases.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = s.o.Leases.Create(ctx, s.held(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, reason), metav1.CreateOptions{})
	case err != nil:
		return "", err
	default:
		if other := s.holder(lease); other != "" {
			return other, nil
		}
		_, err = s.o.Leases.Update(ctx, s.held(lease, reason), metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return "a node that was faster", nil
	}
	return "", err
}

// holder is the other node that has a slot, with its reason; empty if the slot is free.
func (s *Semaphore) holder(lease *coordinationv1.Lease) string {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == s.o.Node || spec.RenewTime == nil || s.expired(lease) {
		return ""
	}
	if reason := lease.Annotations[reasonAnnotation]; reason != "" {
		return *spec.HolderIdentity + " (" + reason + ")"
	}
	return *spec.HolderIdentity
}

// expired reports whether another node has kept a slot for too long. The clock of that node may be wrong, so its time counts alone only
// if it is long ago; else the slot must not have changed for as long as it counts by the clock of this node.
func (s *Semaphore) expired(lease *coordinationv1.Lease) bool {
	now := s.o.Now()
	if now.Sub(lease.Spec.RenewTime.Time).Abs() > Duration+maxSkew {
		return true
	}
	seen := s.seen[lease.Name]
	if seen.name != lease.ResourceVersion {
		seen = version{lease.ResourceVersion, now}
		s.seen[lease.Name] = seen
	}
	return now.Sub(seen.first) > Duration
}

// held is a slot as this node holds it.
func (s *Semaphore) held(lease *coordinationv1.Lease, reason string) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	now, seconds := metav1.NewMicroTime(s.o.Now()), int32(Duration/time.Second)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.AcquireTime, lease.Spec.RenewTime = &s.o.Node, &seconds, &now, &now
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, reasonAnnotation, reason)
	return lease
}

// Release implements [guard.Fleet].
func (s *Semaphore) Release(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slot == "" {
		return nil
	}
	lease, err := s.o.Leases.Get(ctx, s.slot, metav1.GetOptions{})
	if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == s.o.Node {
		none := ""
		lease.Spec.HolderIdentity = &none
		_, err = s.o.Leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil && !errors.Is(err, context.Canceled) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("fleet: release %s: %w", s.slot, err)
	}
	s.slot = ""
	return nil
}

// hash spreads names.
func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}
