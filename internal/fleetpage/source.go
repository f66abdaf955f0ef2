package fleetpage

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/node/fleet"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// source is what a fleet knows of one of its nodes. It keeps no history.
type source struct {
	node             *fleet.Node
	manager          *status.Manager
	version, runtime string
}

// UIDs implements [view.Source].
func (s *source) UIDs() (uids []types.UID) {
	for _, pod := range s.node.Pods() {
		uids = append(uids, pod.UID)
	}
	return uids
}

// Pod implements [view.Source].
func (s *source) Pod(uid types.UID) (view.Pod, bool) {
	for _, pod := range s.node.Pods() {
		if pod.UID == uid {
			return view.Pod{Facts: s.facts(pod)}, true
		}
	}
	return view.Pod{}, false
}

func (s *source) facts(pod *v1.Pod) explain.Facts {
	f := explain.Facts{Now: time.Now(), Pod: pod, Node: explain.Node{Name: s.node.Name()}}
	if reported, known := s.manager.GetPodStatus(pod.UID); known {
		f.Status = &reported
	}
	if delivery, known := s.manager.Delivery(pod.UID); known {
		f.Delivery = &delivery
	}
	if ready := readyOf(s.node); ready.Status != v1.ConditionTrue {
		f.Node.NotReady = ready.Message
	}
	return f
}

// Gone implements [view.Source].
func (s *source) Gone() []view.PodHistory { return nil }

// History implements [view.Source].
func (s *source) History(string, string) (view.PodHistory, bool) { return view.PodHistory{}, false }

// Node implements [view.Source].
func (s *source) Node() view.NodeDetail {
	keeper := s.node.Keeper()
	detail := view.NodeDetail{Name: s.node.Name(), UID: keeper.UID(), Version: s.version, Runtime: s.runtime}
	if current := keeper.Current(); current != nil {
		detail.Conditions, detail.Addresses = current.Status.Conditions, current.Status.Addresses
		detail.Capacity, detail.Allocatable = current.Status.Capacity, current.Status.Allocatable
	}
	if renewed := keeper.LeaseRenewed(); !renewed.IsZero() {
		detail.Delivery.LeaseRenewed = &renewed
	}
	if err := keeper.Err(); err != nil {
		detail.Problems = append(detail.Problems, err.Error())
	}
	pods := s.node.Pods()
	running := pods[:0:0]
	mine := map[types.UID]bool{}
	for _, pod := range pods {
		mine[pod.UID] = true
		if reported, known := s.manager.GetPodStatus(pod.UID); !known || !podstatus.IsTerminal(reported.Phase) {
			running = append(running, pod)
		}
	}
	detail.Requested = fit.Total(running)
	for _, p := range s.manager.Pending() { // longest waiting first
		if !mine[p.UID] {
			continue
		}
		detail.Delivery.Pending++
		if !p.Since.IsZero() {
			detail.Delivery.OldestSeconds = max(detail.Delivery.OldestSeconds, time.Since(p.Since).Seconds())
		}
		if p.Err != nil && detail.Delivery.LastError == "" {
			detail.Delivery.LastError = p.Err.Error()
		}
	}
	return detail
}

// The fleet announces no changes. Polling a node whose page is open is cheap, and no other node is polled.
const (
	lookEvery = time.Second
	nodeEvery = 5 // looks
)

// state shows whether a pod has changed.
type state struct {
	resourceVersion   string
	version, accepted uint64
}

// Watch implements [view.Source].
func (s *source) Watch(ctx context.Context, changed func(types.UID)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	before := map[types.UID]state{}
	for n := 0; ; n++ {
		if n%nodeEvery == 0 {
			changed("")
		}
		now := map[types.UID]state{}
		for _, pod := range s.node.Pods() {
			is := state{resourceVersion: pod.ResourceVersion}
			if delivery, known := s.manager.Delivery(pod.UID); known {
				is.version, is.accepted = delivery.Version, delivery.Accepted
			}
			if now[pod.UID] = is; before[pod.UID] != is {
				changed(pod.UID)
			}
		}
		for uid := range before {
			if _, there := now[uid]; !there {
				changed(uid)
			}
		}
		before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

func readyOf(n *fleet.Node) v1.NodeCondition {
	if err := n.Keeper().Err(); err != nil {
		return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionUnknown, Message: err.Error()}
	}
	if current := n.Keeper().Current(); current != nil {
		for _, c := range current.Status.Conditions {
			if c.Type == v1.NodeReady {
				return c
			}
		}
	}
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionUnknown, Message: "the Node is not registered yet"}
}
