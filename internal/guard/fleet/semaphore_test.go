package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/fleet"
)

// leases is an API server with optimistic locks, as far as the semaphore uses it.
type leases struct {
	mu      sync.Mutex
	objects map[string]*coordinationv1.Lease
	version int
	err     error
}

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *leases) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if lease := l.objects[name]; lease != nil {
		return lease.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (l *leases) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects[lease.Name] != nil {
		return nil, apierrors.NewAlreadyExists(resource, lease.Name)
	}
	return l.store(lease), nil
}

func (l *leases) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects[lease.Name].ResourceVersion != lease.ResourceVersion {
		return nil, apierrors.NewConflict(resource, lease.Name, errors.New("another version"))
	}
	return l.store(lease), nil
}

func (l *leases) store(lease *coordinationv1.Lease) *coordinationv1.Lease {
	l.version++
	lease = lease.DeepCopy()
	lease.ResourceVersion = strconv.Itoa(l.version)
	if l.objects == nil {
		l.objects = map[string]*coordinationv1.Lease{}
	}
	l.objects[lease.Name] = lease
	return lease
}

func semaphores(server fleet.Leases, nodes int) (all []*fleet.Semaphore) {
	for i := range nodes {
		all = append(all, fleet.New(fleet.Options{Leases: server, Node: fmt.Sprintf("node-%d", i), Nodes: func(context.Context) (int, error) { return nodes, nil }}))
	}
	return all
}

func TestSlots(t *testing.T) {
	for nodes, want := range map[int]int{0: 1, 1: 1, 50: 1, 99: 1, 100: 2, 5000: 100} {
		if got := fleet.Slots(nodes); got != want {
			t.Errorf("%d nodes: %d slots, want %d", nodes, got, want)
		}
	}
}

// Of all nodes of a cluster that ask at once, as many get a slot as there are; the others read who has them, and why.
func TestSemaphore_AtMostTwoPercentAtOnce(t *testing.T) {
	server := &leases{}
	var got, busy int
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, s := range semaphores(server, 200) {
		asking.Go(func() {
			err := s.Acquire(t.Context(), guard.ProcessGone)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				got++
			case errors.Is(err, guard.ErrFleetBusy):
				busy++
			default:
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if got == 0 || got > 4 || got+busy != 200 {
		t.Errorf("%d nodes got a slot and %d did not, want 4 slots for 200 nodes", got, busy)
	}
	late := fleet.New(fleet.Options{Leases: server, Node: "late", Nodes: func(context.Context) (int, error) { return 1, nil }})
	err := late.Acquire(t.Context(), guard.LeaseStale)
	if got == 4 && (err == nil || !strings.Contains(err.Error(), "(ProcessGone)")) {
		t.Errorf("got %v", err)
	}
}

// A slot is free once it was released, and once its holder has kept it for too long.
func TestSemaphore_ReleaseAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := semaphores(&leases{}, 3)
		acquire := func(i int, free bool) {
			t.Helper()
			if err := all[i].Acquire(t.Context(), guard.ProcessGone); (err == nil) != free || err != nil && !errors.Is(err, guard.ErrFleetBusy) {
				t.Errorf("node %d: got %v", i, err)
			}
		}
		acquire(0, true)
		acquire(0, true) // it is its own
		acquire(1, false)
		if err := all[0].Release(t.Context()); err != nil {
			t.Error(err)
		}
		acquire(1, true)
		acquire(2, false)
		if err := all[0].Release(t.Context()); err != nil { // the slot of another is not released
			t.Error(err)
		}
		acquire(2, false)
		time.Sleep(fleet.Duration + time.Second)
		acquire(2, true)
	})
}

// A slot counts by the clock of the node that asks: a node whose clock is wrong holds it as any other. One of a node that is long gone is free.
func TestSemaphore_ClockOfTheHolder(t *testing.T) {
	for _, c := range []struct {
		skew time.Duration
		free bool // at once
	}{{-10 * time.Minute, false}, {10 * time.Minute, false}, {-time.Hour, true}} {
		t.Run(c.skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &leases{}
				one := func(context.Context) (int, error) { return 1, nil }
				wrong := fleet.New(fleet.Options{Leases: server, Node: "wrong", Nodes: one, Now: func() time.Time { return time.Now().Add(c.skew) }})
				right := fleet.New(fleet.Options{Leases: server, Node: "right", Nodes: one})
				if err := wrong.Acquire(t.Context(), guard.ProcessGone); err != nil {
					t.Fatal(err)
				}
				if err := right.Acquire(t.Context(), guard.ProcessGone); (err == nil) != c.free {
					t.Errorf("at once: got %v, want it free: %t", err, c.free)
				}
				time.Sleep(fleet.Duration + time.Second)
				if err := right.Acquire(t.Context(), guard.ProcessGone); err != nil {
					t.Errorf("after %v: got %v", fleet.Duration, err)
				}
			})
		})
	}
}

// An API server that does not answer is no free slot and no busy one.
func TestSemaphore_UnknownIsNotFree(t *testing.T) {
	s := semaphores(&leases{err: errors.New("connection refused")}, 1)[0]
	if err := s.Acquire(t.Context(), guard.LeaseStale); err == nil || errors.Is(err, guard.ErrFleetBusy) {
		t.Errorf("got %v", err)
	}
}
