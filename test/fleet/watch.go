package main

import (
	"context"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/podstatus"
)

// seen is what the API server has shown of pods and leases, counted by informers: a bare watch may be ended by the server at any time, and
// lists of all pods would take the time of the server that is measured.
type seen struct {
	mu      sync.Mutex // guards what follows
	ready   map[types.UID]bool
	deleted int
	// renewed is when each lease was last renewed, as its holder says; renewals and longest count from the last look on.
	renewed  map[string]time.Time
	renewals int
	longest  time.Duration
}

// watch counts until ctx ends.
func (m *measurement) watch(ctx context.Context) (*seen, error) {
	s := &seen{ready: make(map[types.UID]bool), renewed: make(map[string]time.Time)}
	factory := informers.NewSharedInformerFactoryWithOptions(m.client, 0, informers.WithTransform(slim))
	pods := cache.ResourceEventHandlerFuncs{
		AddFunc: s.pod, UpdateFunc: func(_, object any) { s.pod(object) },
		DeleteFunc: func(any) { s.mu.Lock(); s.deleted++; s.mu.Unlock() },
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(pods); err != nil {
		return nil, err
	}
	leases := cache.ResourceEventHandlerFuncs{AddFunc: s.lease, UpdateFunc: func(_, object any) { s.lease(object) }}
	if _, err := factory.Coordination().V1().Leases().Informer().AddEventHandler(leases); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return s, nil
}

// slim drops fields that are not counted: the contender runs on the same machine.
func slim(object any) (any, error) {
	if pod, ok := object.(*v1.Pod); ok {
		pod.ManagedFields, pod.Spec = nil, v1.PodSpec{}
	}
	return object, nil
}

func (s *seen) pod(object any) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	if c := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady); c != nil && c.Status == v1.ConditionTrue {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ready[pod.UID] = true
	}
}

func (s *seen) lease(object any) {
	lease, ok := object.(*coordination.Lease)
	if !ok || lease.Namespace != v1.NamespaceNodeLease || lease.Spec.RenewTime == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, now := s.renewed[lease.Name], lease.Spec.RenewTime.Time
	if !now.After(last) {
		return
	}
	if !last.IsZero() {
		s.renewals++
		s.longest = max(s.longest, now.Sub(last))
	}
	s.renewed[lease.Name] = now
}

// count returns how many pods have been Ready, and how many were deleted.
func (s *seen) count() (ready, deleted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready), s.deleted
}

// since returns how many leases were renewed after a time.
func (s *seen) since(at time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, renewed := range s.renewed {
		if renewed.After(at) {
			n++
		}
	}
	return n
}

// leases returns the renewals since it was last called, and the longest time between two of one node, the time since its last one included.
func (s *seen) leases() (renewals int, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	renewals, longest = s.renewals, s.longest
	for _, renewed := range s.renewed {
		longest = max(longest, time.Since(renewed))
	}
	s.renewals, s.longest = 0, 0
	return renewals, longest
}
