package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/nodelease"
	"github.com/statusd/statusd/internal/text"
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
	Addresses   map[string]json.RawMessage            `json:"f:addresses"`
	Endpoints   json.RawMessage                       `json:"f:daemonEndpoints"`
	Images      json.RawMessage                       `json:"f:images"`
	VolumesUsed json.RawMessage                       `json:"f:volumesInUse"`
}

// nodeFieldsOf are the fields of the Node's status written by a writer other than the kubelet, or nil.
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

// nodeWriters are the findings for writers that have changed the kubelet's fields of the Node, one difference each. A value that the machine, the
// kubelet or its lease contradicts is certain. The kubelet overwrites other values within seconds, so that only a repeated writer is reported, as
// possible.
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

// nodeDiff returns the fields of the writer that are known to be false, and the doubtful ones.
func (w *world) nodeDiff(manager string, fields *nodeFields) (against []fieldDiff, doubtful []fieldDiff) {
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
			doubtful = append(doubtful, fieldDiff{field: string(t), is: string(is)})
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
			doubtful = append(doubtful, fieldDiff{field: name})
		}
	}
	return against, append(doubtful, w.nodePlaces(manager, fields)...)
}

// nodePlaces are the fields of the writer that say where the node and its kubelet are reached, and what runs there. A program of a cloud may write
// addresses by right, which the kubelet then leaves as they are.
func (w *world) nodePlaces(manager string, fields *nodeFields) (list []fieldDiff) {
	if len(fields.Addresses) > 0 && !strings.Contains(manager, "cloud-controller") {
		list = append(list, w.nodeAddresses()...)
	}
	if len(fields.Endpoints) > 0 {
		is := w.NodeObject.Status.DaemonEndpoints.KubeletEndpoint.Port
		d := fieldDiff{field: "port of the kubelet", is: strconv.Itoa(int(is))}
		if port := w.kubeletPort(); port != "" && port != d.is {
			d.was = "the kubelet answers on port " + port
		}
		list = append(list, d)
	}
	if len(fields.Images) > 0 {
		list = append(list, fieldDiff{field: "images"})
	}
	if len(fields.VolumesUsed) > 0 {
		list = append(list, fieldDiff{field: "volumesInUse"})
	}
	for _, name := range slices.Sorted(maps.Keys(fields.NodeInfo)) {
		if !slices.ContainsFunc(w.identities(), func(id identity) bool { return id.field == name }) {
			list = append(list, fieldDiff{field: strings.TrimPrefix(name, "f:")})
		}
	}
	return list
}

// nodeAddresses are the internal addresses of the Node, with those of the machine if it has none of them.
func (w *world) nodeAddresses() (list []fieldDiff) {
	for _, a := range w.NodeObject.Status.Addresses {
		if a.Type != v1.NodeInternalIP {
			continue
		}
		d := fieldDiff{field: string(a.Type), is: a.Address}
		if own := w.Addresses; w.MachineAnswer.Known() && len(own) > 0 && !slices.Contains(own, a.Address) {
			d.was = "this machine has the addresses " + few(own)
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		list = []fieldDiff{{field: "addresses"}}
	}
	return list
}

// few are the first of several names.
func few(names []string) string {
	const enough = 4
	if rest := len(names) - enough; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), rest)
	}
	return strings.Join(names, ", ")
}

// kubeletPort is the port on which the kubelet answers; empty if that is not known.
func (w *world) kubeletPort() string {
	if !w.kubeletAnswers() {
		return ""
	}
	from, err := url.Parse(w.KubeletAnswer.From)
	if err != nil {
		return ""
	}
	return from.Port()
}

func (w *world) nodeWriter(e metav1.ManagedFieldsEntry, against, doubtful []fieldDiff) finding {
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
		var names, truth []string
		for _, f := range doubtful {
			names = append(names, strings.TrimSpace(f.field+" "+f.is))
			if f.was != "" {
				truth = append(truth, f.was)
			}
		}
		d.Message = fmt.Sprintf("%q writes %s to the status of node %s again and again, which belongs to the kubelet", e.Manager, strings.Join(names, ", "), w.Node)
		d.Evidence = []Evidence{written(strings.Join(names, ", "))}
		if d.Certainty = Possible; len(truth) > 0 {
			d.Certainty = Certain
			d.Message += "; " + strings.Join(truth, "; ") + "."
		} else {
			d.Message += ". Whether that is true is not known."
		}
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
	// The write itself was observed, so no propagation is awaited.
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
	return []finding{w.leaseWriter("lease", "f:holderIdentity", fmt.Sprintf("names %q as its holder", holder),
		"the kubelet, which renews it, does not correct it", fmt.Sprintf("holderIdentity %q", holder),
		", and delete the lease: the kubelet creates it again under its own name.")}
}

// leaseDuration is a duration of the lease that another writer has written since the last renewal.
func (w *world) leaseDuration() []finding {
	if !w.APIAnswer.Known() || w.Lease == nil || w.Lease.Spec.LeaseDurationSeconds == nil || nodelease.Foreign(w.Lease, "f:leaseDurationSeconds") == nil {
		return nil
	}
	term := text.Span(time.Duration(*w.Lease.Spec.LeaseDurationSeconds) * time.Second)
	return []finding{w.leaseWriter("duration", "f:leaseDurationSeconds", "says that a renewal is valid for "+term,
		"the kubelet corrects it at its next renewal", "leaseDurationSeconds "+term, ".")}
}

// leaseWriter is a field of the lease that another writer has written.
func (w *world) leaseWriter(subject, field, says, corrects, text, do string) finding {
	writer, since := "an unknown writer", w.LeaseAt
	for _, e := range w.Lease.ManagedFields {
		if nodelease.Owns(e, field) {
			writer = e.Manager
			if e.Time != nil {
				since = w.machineTime(e.Time.Time)
			}
		}
	}
	return finding{
		Difference: Difference{Kind: ForeignWriter, Subject: subject, Since: since, Certainty: Certain, Writer: writer,
			Message:  fmt.Sprintf("The lease of node %s %s; %q has written that, and %s.", w.Node, says, writer, corrects),
			Evidence: []Evidence{w.evidence(SideAPI, w.LeaseAt, fmt.Sprintf("%s, renewed %s", text, w.when(renewTime(w.Lease.Spec.RenewTime))))},
			Do:       fmt.Sprintf("Find out why %q writes leases in %s%s", writer, v1.NamespaceNodeLease, do)},
		needs: []Side{SideAPI}, fresh: []Side{SideAPI},
	}
}

// forgedRenewal returns the entry of a writer, other than the kubelet, whose renew time in the lease differs from the time of the write, or nil.
func (w *world) forgedRenewal() *metav1.ManagedFieldsEntry {
	if w.Lease == nil {
		return nil
	}
	e := nodelease.Foreign(w.Lease, "f:renewTime")
	if e == nil || e.Time == nil || w.machineTime(e.Time.Time).Sub(renewTime(w.Lease.Spec.RenewTime)).Abs() < w.leaseTerm() {
		return nil
	}
	return e
}

// leaseRenewer is the finding for another writer that renews the lease while the kubelet is known not to run, so that the node seems healthy, or with a
// renew time that differs from the time of the write.
func (w *world) leaseRenewer() []finding {
	if !w.APIAnswer.Known() || w.Lease == nil {
		return nil
	}
	renewed := w.when(renewTime(w.Lease.Spec.RenewTime))
	find := func(e *metav1.ManagedFieldsEntry, message, do string) finding {
		return finding{
			Difference: Difference{Kind: ForeignWriter, Subject: "renewals", Since: w.LeaseAt, Certainty: Certain, Writer: e.Manager, Message: message,
				Evidence: []Evidence{w.evidence(SideAPI, w.LeaseAt, fmt.Sprintf("renewed %s by %q (%s)", renewed, e.Manager, e.Operation))},
				Do:       strings.TrimSpace(fmt.Sprintf("Find out why %q writes leases in %s. %s", e.Manager, v1.NamespaceNodeLease, do))},
			needs: []Side{SideAPI}, fresh: []Side{SideAPI}}
	}
	if e := nodelease.Foreign(w.Lease, "f:renewTime"); e != nil && w.kubeletHalted() && w.leaseRenewed() {
		f := find(e, fmt.Sprintf("%q renews the lease of node %s, and %s: to the control plane the node lives.", e.Manager, w.Node, w.processWords()), w.doProcess())
		f.Evidence = append(f.Evidence, w.evidence(SideMachine, time.Time{}, w.processWords()))
		f.needs, f.fresh = append(f.needs, SideMachine), append(f.fresh, SideMachine)
		return []finding{f}
	}
	if e := w.forgedRenewal(); e != nil && !w.kubeletHalted() {
		return []finding{find(e, fmt.Sprintf("%q has written at %s that the lease of node %s was renewed at %s: what goes by the lease does not know whether the kubelet works.",
			e.Manager, w.when(w.machineTime(e.Time.Time)), w.Node, renewed), "The kubelet corrects it at its next renewal.")}
	}
	return nil
}

func renewTime(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
