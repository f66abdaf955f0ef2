package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownManagers are the names under which statusd writes to a Node: a guard reports a shutdown while the kubelet does not.
var ownManagers = []string{"statusd", "statusd-observe"}

// controllerManager writes Ready Unknown by right when a kubelet was not heard.
const controllerManager = "kube-controller-manager"

// nodeConditions are the conditions of a Node that the kubelet owns. NetworkUnavailable and others belong to their makers.
var nodeConditions = []v1.NodeConditionType{v1.NodeReady, v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// nodeResources are the resources that the kubelet measures. Others are extended ones, which anyone with the right may write.
var nodeResources = []string{"cpu", "memory", "pods", "ephemeral-storage"}

// nodeFields are the fields of a Node's status in an entry of its managedFields.
type nodeFields struct {
	Conditions  map[string]map[string]json.RawMessage `json:"f:conditions"`
	NodeInfo    map[string]json.RawMessage            `json:"f:nodeInfo"`
	Capacity    map[string]json.RawMessage            `json:"f:capacity"`
	Allocatable map[string]json.RawMessage            `json:"f:allocatable"`
}

// nodeFieldsOf are the fields of the Node's status that a writer which is not the kubelet has written; nil if there are none.
func (w *world) nodeFieldsOf(e metav1.ManagedFieldsEntry) *nodeFields {
	if w.writers[e.Manager] || slices.Contains(ownManagers, e.Manager) || e.FieldsV1 == nil {
		return nil
	}
	var set struct {
		Status *nodeFields `json:"f:status"`
	}
	if json.Unmarshal(e.FieldsV1.GetRawBytes(), &set) != nil {
		return nil
	}
	return set.Status
}

// forgedIdentity are the names of the machine that another writer than the kubelet has written to the Node.
func (w *world) forgedIdentity() map[string]bool {
	forged := map[string]bool{}
	for _, e := range w.NodeObject.ManagedFields {
		if fields := w.nodeFieldsOf(e); fields != nil {
			for name := range fields.NodeInfo {
				forged[name] = true
			}
		}
	}
	return forged
}

// nodeWriters are the writers that have changed what the kubelet says of its node, one difference each. What the machine, the kubelet or its
// lease contradicts is certain. The kubelet writes the rest again within seconds, so that only a writer that comes back is reported, as possible.
func (w *world) nodeWriters() []finding {
	if !w.APIAnswer.Known() || w.NodeObject == nil {
		return nil
	}
	var list []finding
	for _, e := range w.NodeObject.ManagedFields {
		fields := w.nodeFieldsOf(e)
		if fields == nil {
			continue
		}
		against, doubtful := w.nodeDiff(e.Manager, fields)
		if len(against)+len(doubtful) > 0 {
			list = append(list, w.nodeWriter(e, against, doubtful))
		}
	}
	return list
}

// nodeDiff are the fields of the writer that are not true, and those of which that is not known.
func (w *world) nodeDiff(manager string, fields *nodeFields) (against []fieldDiff, doubtful []string) {
	for _, t := range nodeConditions {
		if _, written := fields.Conditions[fmt.Sprintf(`k:{"type":"%s"}`, t)]["f:status"]; !written {
			continue
		}
		at := slices.IndexFunc(w.NodeObject.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == t })
		if at < 0 {
			continue
		}
		is := w.NodeObject.Status.Conditions[at].Status
		if manager == controllerManager && is == v1.ConditionUnknown {
			continue
		}
		switch {
		case t == v1.NodeReady && is != v1.ConditionTrue && w.leaseRenewed() && w.kubeletAnswers():
			against = append(against, fieldDiff{field: string(t), is: string(is), was: "the kubelet answers and renews its lease"})
		case t == v1.NodeReady && is == v1.ConditionTrue && w.kubeletHalted():
			against = append(against, fieldDiff{field: string(t), is: string(is), was: w.processWords()})
		default:
			doubtful = append(doubtful, string(t)+" "+string(is))
		}
	}
	if w.MachineAnswer.Known() {
		for _, id := range w.identities() {
			if _, written := fields.NodeInfo[id.field]; written && !id.same() {
				against = append(against, fieldDiff{field: id.name, is: id.api, was: "this machine has the " + id.name + " " + id.machine})
			}
		}
	}
	for _, name := range nodeResources {
		_, capacity := fields.Capacity["f:"+name]
		_, allocatable := fields.Allocatable["f:"+name]
		if capacity || allocatable {
			doubtful = append(doubtful, name)
		}
	}
	return against, doubtful
}

func (w *world) nodeWriter(e metav1.ManagedFieldsEntry, against []fieldDiff, doubtful []string) finding {
	var since time.Time
	if e.Time != nil {
		since = w.machineTime(e.Time.Time)
	}
	d := Difference{Kind: ForeignWriter, Subject: "node", Since: since, Certainty: Certain, Writer: e.Manager,
		Do: fmt.Sprintf("Find out why %q writes the status of nodes, and take the right to nodes/status from it. The kubelet corrects it at its next report.", e.Manager)}
	written := func(what string) Evidence {
		return w.evidence(SideAPI, w.NodeAt, fmt.Sprintf("%s; written by %q (%s) at %s", what, e.Manager, e.Operation, w.when(since)))
	}
	if len(against) == 0 {
		names := strings.Join(doubtful, ", ")
		d.Certainty = Possible
		d.Message = fmt.Sprintf("%q writes %s to the status of node %s again and again, which belongs to the kubelet. Whether that is true is not known.", e.Manager, names, w.Node)
		d.Evidence = []Evidence{written(names)}
		return finding{Difference: d, needs: []Side{SideAPI}, fresh: []Side{SideAPI}, onReturn: true}
	}
	var api []string
	needs := []Side{SideAPI}
	for _, f := range against {
		api = append(api, f.field+" "+f.is)
	}
	d.Message = fmt.Sprintf("%q has written %s to the status of node %s, which belongs to the kubelet; %s.", e.Manager, api[0], w.Node, against[0].was)
	d.Evidence = []Evidence{written(strings.Join(api, ", "))}
	for _, f := range against {
		side := SideMachine
		if f.field == string(v1.NodeReady) && f.is != string(v1.ConditionTrue) {
			side = SideKubelet
		}
		d.Evidence = append(d.Evidence, w.evidence(side, time.Time{}, f.was))
		if !slices.Contains(needs, side) {
			needs = append(needs, side)
		}
	}
	// The write itself is seen: no news of it is waited for.
	return finding{Difference: d, needs: needs, fresh: needs}
}

// leaseRenewed reports whether the lease is known and not over.
func (w *world) leaseRenewed() bool {
	end := w.leaseEnd()
	return !end.IsZero() && w.Now.Before(end) && w.leaseQuiet < w.leaseTerm()
}

// leaseHolder is a lease that names another holder than the node. A kubelet renews such a lease and does not correct it; tools that go by the
// holder, the guard among them, are misled.
func (w *world) leaseHolder() []finding {
	if !w.APIAnswer.Known() || w.Lease == nil || w.Lease.Spec.HolderIdentity == nil {
		return nil
	}
	holder := *w.Lease.Spec.HolderIdentity
	if holder == "" || holder == w.Node {
		return nil
	}
	writer, since := "an unknown writer", w.LeaseAt
	for _, e := range w.Lease.ManagedFields {
		if owns(e, "f:holderIdentity") {
			writer = e.Manager
			if e.Time != nil {
				since = w.machineTime(e.Time.Time)
			}
		}
	}
	return []finding{{
		Difference: Difference{Kind: ForeignWriter, Subject: "lease", Since: since, Certainty: Certain, Writer: writer,
			Message:  fmt.Sprintf("The lease of node %s names %q as its holder; %q has written that, and the kubelet, which renews it, does not correct it.", w.Node, holder, writer),
			Evidence: []Evidence{w.evidence(SideAPI, w.LeaseAt, fmt.Sprintf("holderIdentity %q, renewed %s", holder, w.when(renewTime(w.Lease.Spec.RenewTime))))},
			Do:       fmt.Sprintf("Find out why %q writes leases in %s, and delete the lease: the kubelet creates it again under its own name.", writer, v1.NamespaceNodeLease)},
		needs: []Side{SideAPI}, fresh: []Side{SideAPI},
	}}
}

func renewTime(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
