package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/nodelease"
	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// RepairManager is the name under which internal/audit/repair writes. It writes for a kubelet that is dead.
const RepairManager = "statusd-repair"

// writtenFields are the fields of a status that the kubelet owns and another has written.
type writtenFields struct {
	phase, containers, podIP, hostIP, scheduled, startTime, reason bool
	conditions                                                     []v1.PodConditionType
	// others are fields that nothing contradicts.
	others []string
}

func (f writtenFields) empty() bool {
	return len(f.names()) == 0
}

// names are the fields, in the words of messages.
func (f writtenFields) names() (names []string) {
	for _, field := range []struct {
		written bool
		name    string
	}{{f.phase, "phase"}, {f.containers, "containerStatuses"}, {f.podIP, fieldPodIP}, {f.hostIP, fieldHostIP}, {f.scheduled, string(v1.PodScheduled)},
		{f.startTime, fieldStartTime}, {f.reason, fieldReason}} {
		if field.written {
			names = append(names, field.name)
		}
	}
	for _, t := range f.conditions {
		names = append(names, string(t))
	}
	return append(names, f.others...)
}

const (
	fieldPodIP     = "podIP"
	fieldHostIP    = "hostIP"
	fieldStartTime = "startTime"
	fieldReason    = "reason"
)

// otherFields are the status fields that the kubelet alone writes, in addition to the compared fields.
var otherFields = []string{"ephemeralContainerStatuses", "observedGeneration", "qosClass"}

// otherConditions are the conditions that the kubelet alone writes, in addition to the compared ones.
var otherConditions = []v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodResizePending, v1.PodResizeInProgress}

func (f writtenFields) has(d fieldDiff) bool {
	return d.field == fieldPodIP && f.podIP || d.field == fieldHostIP && f.hostIP || d.field == "phase" && f.phase || d.container != "" && f.containers || slices.Contains(f.conditions, v1.PodConditionType(d.field))
}

// explains reports whether a field is not true because of these: conditions follow from the phase.
func (f writtenFields) explains(d fieldDiff) bool {
	return f.has(d) || f.phase && slices.Contains(compared, v1.PodConditionType(d.field))
}

func (f writtenFields) and(g writtenFields) writtenFields {
	return writtenFields{phase: f.phase || g.phase, containers: f.containers || g.containers, podIP: f.podIP || g.podIP, hostIP: f.hostIP || g.hostIP, scheduled: f.scheduled || g.scheduled,
		startTime: f.startTime || g.startTime, reason: f.reason || g.reason, conditions: slices.Concat(f.conditions, g.conditions), others: slices.Concat(f.others, g.others)}
}

// foreignWriters are the writers that have written what the kubelet owns and another side
// contradicts, one difference each, and the fields that they explain.
func (w *world) foreignWriters(p *podView) ([]finding, writtenFields) {
	var list []finding
	var all writtenFields
	if p.api == nil || !w.APIAnswer.Known() {
		return nil, all
	}
	for _, e := range p.api.Pod.ManagedFields {
		if w.writers[e.Manager] || e.Manager == RepairManager || e.FieldsV1 == nil {
			continue
		}
		fields := foreignFields(e, &p.api.Pod.Status)
		if fields.empty() {
			continue
		}
		against, side := w.contradicted(p, fields)
		if len(against) == 0 {
			list = append(list, w.doubtfulWriter(p, e, fields))
			continue
		}
		all = all.and(fields)
		list = append(list, w.foreignWriter(p, e, against, side))
	}
	return list, all
}

func (w *world) foreignWriter(p *podView, e metav1.ManagedFieldsEntry, against []fieldDiff, side Side) finding {
	var since time.Time
	if e.Time != nil {
		since = w.machineTime(e.Time.Time)
	}
	d := Difference{Kind: ForeignWriter, Pod: p.ref, Since: since, Certainty: Certain, Writer: e.Manager}
	var api, truth []string
	for _, f := range against {
		api, truth = append(api, f.field+" "+f.is), append(truth, f.field+" "+f.was)
	}
	d.Subject = strings.Join(fieldNames(against), ", ")
	if names := diffContainers(against); len(names) == 1 {
		d.Container = names[0]
	}
	d.Message = fmt.Sprintf("%q has written %s to the status of %s/%s, which belongs to the kubelet; %s %s.", e.Manager, api[0], p.ref.Namespace, p.ref.Name, saysWords(side), against[0].was)
	d.Evidence = []Evidence{
		w.evidence(SideAPI, p.api.At, fmt.Sprintf("%s; written by %q (%s) at %s", strings.Join(api, ", "), e.Manager, e.Operation, w.when(since))),
		w.evidence(side, time.Time{}, strings.Join(truth, ", ")),
	}
	d.Do = fmt.Sprintf("Find out why %q writes the status of pods, and take the right to pods/status from it.", e.Manager)
	needs := []Side{SideAPI}
	if side != SideAPI {
		needs = append(needs, side)
	}
	// The write itself was observed, so no propagation is awaited.
	return finding{Difference: d, needs: needs, fresh: needs}
}

// doubtfulWriter is a writer of what the kubelet owns that no side contradicts. A single write may be right. A program that writes such fields again
// and again, each time after the kubelet has, is reported as possible.
func (w *world) doubtfulWriter(p *podView, e metav1.ManagedFieldsEntry, fields writtenFields) finding {
	var since time.Time
	if e.Time != nil {
		since = w.machineTime(e.Time.Time)
	}
	names := strings.Join(fields.names(), ", ")
	why := "the kubelet's own status of the pod is not known without its Pods API"
	if w.ownStatus(p) {
		why = "the kubelet's own status says the same at this moment"
	}
	d := Difference{Kind: ForeignWriter, Pod: p.ref, Since: since, Certainty: Possible, Writer: e.Manager, Subject: names,
		Message:  fmt.Sprintf("%q writes %s to the status of %s/%s again and again, which belongs to the kubelet. Whether that is true is not known: %s.", e.Manager, names, p.ref.Namespace, p.ref.Name, why),
		Evidence: []Evidence{w.evidence(SideAPI, p.api.At, fmt.Sprintf("%s written by %q (%s) at %s", names, e.Manager, e.Operation, w.when(since)))},
		Do:       fmt.Sprintf("Find out why %q writes the status of pods, and take the right to pods/status from it.", e.Manager)}
	return finding{Difference: d, needs: []Side{SideAPI}, fresh: []Side{SideAPI}, onReturn: true}
}

func saysWords(s Side) string {
	switch s {
	case SideKubelet:
		return "the kubelet says"
	case SideRuntime:
		return "the runtime says"
	}
	return "by the rest of the status it is"
}

func fieldNames(diffs []fieldDiff) []string {
	var names []string
	for _, d := range diffs {
		names = append(names, d.field)
	}
	return names
}

// contradicted returns which of the fields are not true, and by which side: the kubelet's own status,
// the runtime, or the rest of the API's status.
func (w *world) contradicted(p *podView, fields writtenFields) ([]fieldDiff, Side) {
	if fields.podIP && w.RuntimeAnswer.Known() {
		if diffs := sandboxDiff(p); len(diffs) > 0 {
			return diffs, SideRuntime
		}
	}
	if diffs := w.hostDiff(p, fields); len(diffs) > 0 {
		return diffs, SideAPI
	}
	if diffs := w.addressDiff(p, fields); len(diffs) > 0 {
		return diffs, SideAPI
	}
	if fields.scheduled {
		is := podstatus.FindCondition(p.api.Pod.Status.Conditions, v1.PodScheduled).Status
		return []fieldDiff{{field: string(v1.PodScheduled), is: string(is), was: "True: the pod is bound to node " + w.Node}}, SideAPI
	}
	if diff, side := w.startDiff(p, fields); diff != nil {
		return []fieldDiff{*diff}, side
	}
	if diff := reasonDiff(&p.api.Pod.Status, fields); diff != nil {
		return []fieldDiff{*diff}, SideAPI
	}
	if w.ownStatus(p) {
		// What another wrote is compared as it is: a phase that was made terminal would stay so.
		own := podrules.Normalize(p.kubelet.Pod, &p.kubelet.Pod.Status)
		return slices.DeleteFunc(statusDiff(&p.api.Pod.Status, &own), func(d fieldDiff) bool { return !fields.has(d) }), SideKubelet
	}
	if w.RuntimeAnswer.Known() {
		if diffs := w.runtimeDiff(p, fields); len(diffs) > 0 {
			return diffs, SideRuntime
		}
	}
	return derivedDiff(p.api.Pod, fields), SideAPI
}

// startTolerance is how far the clocks and the whole seconds of a start time, of the API and of the runtime may be apart.
const startTolerance = time.Minute

// startDiff is a time at which the kubelet cannot have accepted the pod: before the pod was created, or after its first sandbox that the runtime
// still has. A static pod keeps its sandbox when the kubelet starts again and accepts the pod once more.
func (w *world) startDiff(p *podView, fields writtenFields) (*fieldDiff, Side) {
	start := p.api.Pod.Status.StartTime
	if !fields.startTime || start == nil || podstatus.IsMirror(p.api.Pod) {
		return nil, ""
	}
	diff := fieldDiff{field: fieldStartTime, is: w.when(start.Time)}
	if created := w.machineTime(p.api.Pod.CreationTimestamp.Time); start.Time.Before(created.Add(-startTolerance)) {
		diff.was = "not before " + w.when(created) + ", when the pod was created"
		return &diff, SideAPI
	}
	if n := len(p.sandboxes); n > 0 && w.RuntimeAnswer.Known() {
		if first := p.sandboxes[n-1].Created; !first.IsZero() && start.Time.After(first.Add(startTolerance)) {
			diff.was = "that the sandbox of the pod was made at " + w.when(first)
			return &diff, SideRuntime
		}
	}
	return nil, ""
}

// reasonDiff is a reason of a pod that has not failed. The kubelet gives a reason to a pod when it ends the pod.
func reasonDiff(s *v1.PodStatus, fields writtenFields) *fieldDiff {
	if !fields.reason || podstatus.IsTerminal(s.Phase) || s.Reason == "" && s.Message == "" {
		return nil
	}
	return &fieldDiff{field: fieldReason, is: cmp.Or(s.Reason, fmt.Sprintf("%q", s.Message)), was: "none: the phase is " + string(s.Phase)}
}

// addressDiff is a host address that the Node does not have.
func (w *world) addressDiff(p *podView, fields writtenFields) []fieldDiff {
	if !fields.hostIP {
		return nil
	}
	return w.notOfTheNode(fieldHostIP, p.api.Pod.Status.HostIP)
}

// hostDiff is an address of a pod in the network of the host that the Node does not have.
func (w *world) hostDiff(p *podView, fields writtenFields) []fieldDiff {
	if !fields.podIP || !p.api.Pod.Spec.HostNetwork {
		return nil
	}
	return w.notOfTheNode(fieldPodIP, p.api.Pod.Status.PodIP)
}

// notOfTheNode is the difference of an address that the Node does not have.
func (w *world) notOfTheNode(field, address string) []fieldDiff {
	if address == "" || w.NodeObject == nil {
		return nil
	}
	var own []string
	for _, a := range w.NodeObject.Status.Addresses {
		if a.Type == v1.NodeInternalIP || a.Type == v1.NodeExternalIP {
			own = append(own, a.Address)
		}
	}
	if len(own) == 0 || slices.Contains(own, address) {
		return nil
	}
	return []fieldDiff{{field: field, is: address, was: strings.Join(own, " or ") + " by the Node"}}
}

// sandboxDiff is an address of a pod that its sandbox does not have. A pod in the network of the host has none of its own.
func sandboxDiff(p *podView) []fieldDiff {
	at := slices.IndexFunc(p.sandboxes, func(s Sandbox) bool { return s.Ready })
	if at < 0 || p.api.Pod.Spec.HostNetwork || len(p.sandboxes[at].IPs) == 0 {
		return nil
	}
	for _, ip := range append([]v1.PodIP{{IP: p.api.Pod.Status.PodIP}}, p.api.Pod.Status.PodIPs...) {
		if ip.IP != "" && !slices.Contains(p.sandboxes[at].IPs, ip.IP) {
			return []fieldDiff{{field: fieldPodIP, is: ip.IP, was: strings.Join(p.sandboxes[at].IPs, ", ")}}
		}
	}
	return nil
}

// runtimeDiff is what the runtime contradicts.
func (w *world) runtimeDiff(p *podView, fields writtenFields) []fieldDiff {
	var list []fieldDiff
	status := &p.api.Pod.Status
	if fields.containers {
		for _, name := range containerNames(p.pod()) {
			st := podstatus.FindContainerStatus(status, name)
			c := comparison{w: w, p: p, by: SideAPI, name: name, status: st}
			found := c.compare()
			was := "none"
			if newest := p.newest(name); newest != nil {
				was = w.runtimeText(newest)
			}
			if count := wrongCount(p, st); count != nil {
				list = append(list, *count)
			} else if found != nil || c.missing || wrongExit(p, st) || otherExit(p, st) {
				list = append(list, fieldDiff{field: fmt.Sprintf("container %q", name), container: name, is: stateWords(st), was: was})
			}
		}
	}
	if running := p.running(); fields.phase && len(running) > 0 && podstatus.IsTerminal(status.Phase) {
		list = append(list, fieldDiff{field: "phase", is: string(status.Phase), was: fmt.Sprintf("container %q runs", running[0].Name)})
	}
	return list
}

// wrongCount is a restart count that differs from the attempt of the running container which the status names. imageID is not compared:
// runtimes name the image of a container differently in different answers.
func wrongCount(p *podView, s *v1.ContainerStatus) *fieldDiff {
	if s == nil || s.State.Running == nil {
		return nil
	}
	c := p.byID(s.Name, bareID(s.ContainerID))
	if c == nil || c.State != ContainerRunning || int64(s.RestartCount) == int64(c.Attempt) {
		return nil
	}
	return &fieldDiff{field: fmt.Sprintf("container %q", s.Name), container: s.Name,
		is: "restarted " + times(int64(s.RestartCount)), was: "restarted " + times(int64(c.Attempt))}
}

// wrongExit reports whether the runtime has another exit code for the same container. An end that was
// not seen has a code of its own.
func wrongExit(p *podView, s *v1.ContainerStatus) bool {
	if s == nil || s.State.Terminated == nil || s.State.Terminated.Reason == podstatus.ReasonContainerStatusUnknown {
		return false
	}
	c := p.byID(s.Name, bareID(s.ContainerID))
	return c != nil && c.State == ContainerExited && c.ExitCode != s.State.Terminated.ExitCode
}

// otherExit reports whether a status that names no container has another exit code than the newest one. The kubelet names the container.
func otherExit(p *podView, s *v1.ContainerStatus) bool {
	if s == nil || s.State.Terminated == nil || s.ContainerID != "" {
		return false
	}
	newest := p.newest(s.Name)
	return newest != nil && newest.State == ContainerExited && newest.ExitCode != s.State.Terminated.ExitCode
}

// derivedDiff is what the rest of the status contradicts: phase and conditions follow from containers.
func derivedDiff(pod *v1.Pod, fields writtenFields) []fieldDiff {
	s := &pod.Status
	statuses := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	if len(statuses) == 0 || fields.containers {
		return nil
	}
	var list []fieldDiff
	phase := s.Phase
	if fields.phase {
		derived := podstatus.Phase(pod, statuses, false, podstatus.HasInitialized(pod, s))
		if derived != phase && !podstatus.IsTerminal(derived) && !deleting(pod) {
			list = append(list, fieldDiff{field: "phase", is: string(phase), was: string(derived)})
			phase = derived
		}
	}
	for _, t := range fields.conditions {
		c := podstatus.FindCondition(s.Conditions, t)
		var derived v1.PodCondition
		switch t {
		case v1.PodReady:
			derived = podstatus.Ready(pod, s.Conditions, statuses, phase)
		case v1.ContainersReady:
			derived = podstatus.ContainersReady(pod, statuses, phase)
		default:
			continue
		}
		if c != nil && derived.Status != c.Status {
			list = append(list, fieldDiff{field: string(t), is: string(c.Status), was: string(derived.Status)})
		}
	}
	return list
}

// foreignFields are the kubelet's fields in the entry, without the fields that parts of the control
// plane write legitimately.
func foreignFields(e metav1.ManagedFieldsEntry, status *v1.PodStatus) writtenFields {
	fields := fieldsOf(e, status)
	if e.Manager == controllerManager {
		return byController(fields, status)
	}
	return fields
}

// fieldsOf are the kubelet's fields in the entry.
func fieldsOf(e metav1.ManagedFieldsEntry, status *v1.PodStatus) writtenFields {
	var set struct {
		Status map[string]json.RawMessage `json:"f:status"`
	}
	if json.Unmarshal(e.FieldsV1.GetRawBytes(), &set) != nil {
		return writtenFields{}
	}
	_, phase := set.Status["f:phase"]
	_, regular := set.Status["f:containerStatuses"]
	_, initial := set.Status["f:initContainerStatuses"]
	fields := writtenFields{phase: phase, containers: regular || initial}
	for _, name := range []string{"f:podIP", "f:podIPs"} {
		_, written := set.Status[name]
		fields.podIP = fields.podIP || written
	}
	for _, name := range []string{"f:hostIP", "f:hostIPs"} {
		_, written := set.Status[name]
		fields.hostIP = fields.hostIP || written
	}
	_, fields.startTime = set.Status["f:startTime"]
	for _, name := range []string{"f:reason", "f:message"} {
		_, written := set.Status[name]
		fields.reason = fields.reason || written
	}
	for _, name := range otherFields {
		if _, written := set.Status["f:"+name]; written {
			fields.others = append(fields.others, name)
		}
	}
	var conditions map[string]map[string]json.RawMessage
	if json.Unmarshal(set.Status["f:conditions"], &conditions) == nil {
		for _, t := range compared {
			if members, ok := conditions[fmt.Sprintf(`k:{"type":"%s"}`, t)]; ok {
				if _, ok := members["f:status"]; ok {
					fields.conditions = append(fields.conditions, t)
				}
			}
		}
		for _, t := range otherConditions {
			if _, written := conditions[fmt.Sprintf(`k:{"type":"%s"}`, t)]["f:status"]; written {
				fields.others = append(fields.others, string(t))
			}
		}
		// The scheduler writes this condition by right, and it is True from the moment that the pod is bound.
		_, written := conditions[fmt.Sprintf(`k:{"type":"%s"}`, v1.PodScheduled)]["f:status"]
		c := podstatus.FindCondition(status.Conditions, v1.PodScheduled)
		fields.scheduled = written && c != nil && c.Status != v1.ConditionTrue
	}
	return fields
}

// byController removes the fields that the controller manager may write: node-lifecycle sets Ready to False
// on a lost node, and the garbage collector of pods ends pods that no node will end; both set reasons.
func byController(f writtenFields, status *v1.PodStatus) writtenFields {
	if status.Phase == v1.PodFailed {
		f.phase = false
	}
	f.reason = false
	f.conditions = slices.DeleteFunc(f.conditions, func(t v1.PodConditionType) bool {
		c := podstatus.FindCondition(status.Conditions, t)
		return c == nil || c.Status != v1.ConditionTrue
	})
	return f
}

// kubeletWriters are the names under which the kubelet writes: "kubelet" and the managers that created the node's lease, or renew it if the creators
// are unknown. Managers that write hostIP and startTime into a pod's status are added if they renew the lease, or if the lease names no manager. A
// distribution may build the kubelet into a program of another name. Neither a program that only renews the lease of a kubelet nor a program that
// writes whole statuses of pods, as simulators of nodes do, is a kubelet.
func kubeletWriters(f Facts) map[string]bool {
	names := map[string]bool{"kubelet": true}
	renewers := map[string]bool{}
	leased := false
	if f.Lease != nil {
		for _, e := range f.Lease.ManagedFields {
			if nodelease.Owns(e, "f:renewTime") {
				renewers[e.Manager] = true
			}
		}
		makers := nodelease.Makers(f.Lease)
		if leased = len(makers) > 0; !leased {
			makers, leased = renewers, len(renewers) > 0
		}
		maps.Copy(names, makers)
	}
	for _, s := range f.APIPods {
		if s.Pod == nil {
			continue
		}
		for _, e := range s.Pod.ManagedFields {
			if e.Subresource == "status" && e.Operation == metav1.ManagedFieldsOperationUpdate && nodelease.Owns(e, "f:hostIP") && nodelease.Owns(e, "f:startTime") &&
				(!leased || renewers[e.Manager]) {
				names[e.Manager] = true
			}
		}
	}
	return names
}
