package run

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/view"
)

// UIDs are the pods of this node; a static pod stands for its mirror.
func (p *Process) UIDs() []types.UID {
	all := p.node.Table.All()
	uids := make([]types.UID, len(all))
	for i, pod := range all {
		uids[i] = pod.UID
	}
	return uids
}

// Pod returns the facts of a pod.
func (p *Process) Pod(uid types.UID) (view.Pod, bool) {
	pod, ok := p.node.Table.ByUID(uid)
	if !ok {
		return view.Pod{}, false
	}
	return view.Pod{Facts: p.node.Facts(pod)}, true
}

// Node returns the facts of this node.
func (p *Process) Node() view.NodeDetail {
	detail := view.NodeDetail{Name: p.node.Name, Version: p.version, Runtime: p.node.Runtime.Version(), Problems: p.problems()}
	if here, err := p.node.Here(); err == nil {
		detail.Conditions, detail.Addresses = here.Status.Conditions, here.Status.Addresses
		detail.Capacity, detail.Allocatable = here.Status.Capacity, here.Status.Allocatable
	}
	detail.Requested = fit.Total(p.node.Active())
	now := time.Now()
	for _, s := range p.node.Manager.Pending() { // longest waiting first
		detail.Delivery.Pending++
		if !s.Since.IsZero() {
			detail.Delivery.OldestSeconds = max(detail.Delivery.OldestSeconds, now.Sub(s.Since).Seconds())
		}
		if s.Err != nil && detail.Delivery.LastError == "" {
			detail.Delivery.LastError = s.Err.Error()
		}
	}
	if p.node.Object == nil {
		detail.Conditions = []v1.NodeCondition{p.readiness()}
		return detail
	}
	detail.UID = p.node.Object.UID()
	if current := p.node.Object.Current(); current != nil {
		detail.Conditions = current.Status.Conditions
	}
	if renewed := p.node.Object.LeaseRenewed(); !renewed.IsZero() {
		detail.Delivery.LeaseRenewed = &renewed
	}
	if since := p.node.NodeFacts(now).Unreachable; !since.IsZero() {
		detail.Delivery.UnreachableSince = &since
	}
	return detail
}

// readiness is the Ready condition of a node that has no Node object.
func (p *Process) readiness() v1.NodeCondition {
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "Standalone", Message: "there is no API server to report to"}
	if err := p.node.NotReady(); err != nil {
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "NotReady", err.Error()
	}
	return ready
}

// problems returns the problems of this node, as clauses.
func (p *Process) problems() (list []string) {
	for _, c := range p.node.Endpoints.Ready {
		if err := c.Err(); err != nil {
			list = append(list, c.Name+": "+err.Error())
		}
	}
	if err := p.node.NotReady(); err != nil {
		list = append(list, "node: "+err.Error())
	}
	if p.node.Manifests != nil {
		for _, p := range p.node.Manifests.Problems() {
			list = append(list, "manifests: "+p.Error())
		}
	}
	return list
}
