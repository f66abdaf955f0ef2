package observer

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/node/fit"
	model "github.com/statusd/statusd/internal/view"
)

// answers is what the observer knows, as the query API asks for it.
type answers struct{ *Observer }

// UIDs are the pods that the API or the kubelet has; a static pod and its mirror are one.
func (a answers) UIDs() []types.UID { return a.view.Load().uids() }

func (a answers) Pod(uid types.UID) (model.Pod, bool) {
	v := a.view.Load()
	s, ok := v.pods[uid]
	if !ok {
		return model.Pod{}, false
	}
	return model.Pod{Facts: podFacts(v, s, uid, time.Now())}, true
}

// Report is the last audit.
func (a answers) Report() audit.Report { return a.view.Load().report }

// Pictures returns the pod as each side reports it.
func (a answers) Pictures(uid types.UID) []audit.Picture {
	return audit.Pictures(a.view.Load().facts, uid)
}

// Node returns the facts of the node.
func (a answers) Node() model.NodeDetail {
	v := a.view.Load()
	detail := model.NodeDetail{Name: a.node, Version: a.options.Version, Problems: a.problems(v)}
	var active []*v1.Pod
	for _, uid := range v.uids() {
		if pod := v.pods[uid].pod(); pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			active = append(active, pod)
		}
	}
	detail.Requested = fit.Total(active)
	if node := v.facts.NodeObject; node != nil {
		detail.UID, detail.Runtime = node.UID, node.Status.NodeInfo.ContainerRuntimeVersion
		detail.Conditions, detail.Addresses = node.Status.Conditions, node.Status.Addresses
		detail.Capacity, detail.Allocatable = node.Status.Capacity, node.Status.Allocatable
	}
	if lease := v.facts.Lease; lease != nil && lease.Spec.RenewTime != nil {
		renewed := lease.Spec.RenewTime.Time
		detail.Delivery.LeaseRenewed = &renewed
	}
	if silent := v.facts.APIAnswer.Silent; !silent.IsZero() {
		detail.Delivery.UnreachableSince = &silent
	}
	return detail
}

// problems returns the problems of the node, as clauses.
func (a answers) problems(v *view) []string {
	list := []string{}
	for _, side := range sideOrder {
		if answer := v.report.Sides[side]; answer.Err != "" {
			list = append(list, fmt.Sprintf("%s: %s", sideNames[side], answer.Err))
		}
	}
	for _, d := range v.drift[""] {
		list = append(list, string(d.Kind)+": "+d.Message)
	}
	return list
}

// sideOrder is the order in which sides are shown.
var sideOrder = []audit.Side{audit.SideAPI, audit.SideKubelet, audit.SideRuntime, audit.SideMachine}

// sideNames are the sides in words.
var sideNames = map[audit.Side]string{
	audit.SideAPI: "the API", audit.SideKubelet: "the kubelet", audit.SideRuntime: "the runtime", audit.SideMachine: "the machine",
}

// podFacts returns the facts of a pod, for its explanation. Pure function.
func podFacts(v *view, s subject, uid types.UID, now time.Time) explain.Facts {
	f := explain.Facts{
		Now: now, Pod: s.pod(), Status: s.decided(), Untrue: untrue(v.drift[uid]),
		Node: explain.Node{Name: v.facts.Node, Unreachable: v.facts.APIAnswer.Silent},
	}
	if d, ok := v.deliveries[uid]; ok {
		f.Delivery = &d
	}
	if node := v.facts.NodeObject; node != nil {
		for _, c := range node.Status.Conditions {
			if c.Status == v1.ConditionTrue && pressures[c.Type] {
				f.Node.Pressure = append(f.Node.Pressure, c.Type)
			}
		}
	}
	return f
}

var pressures = map[v1.NodeConditionType]bool{v1.NodeMemoryPressure: true, v1.NodeDiskPressure: true, v1.NodePIDPressure: true}

// untrue is drift as explanations have it.
func untrue(drift []audit.Difference) (list []explain.Untruth) {
	for i := range drift {
		d := &drift[i]
		u := explain.Untruth{Kind: string(d.Kind), Container: d.Container, Text: d.Message, Since: d.Since, Certainty: string(d.Certainty), Do: d.Do}
		for _, e := range d.Evidence {
			u.Evidence = append(u.Evidence, explain.Statement{By: sideNames[e.Side], At: e.At, Text: e.Text})
		}
		list = append(list, u)
	}
	return list
}
