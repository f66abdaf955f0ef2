package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// RepairManager is the name under which observe/repair writes. It writes for a kubelet that is dead.
const RepairManager = "statusd-repair"

// writtenFields are the fields of a status that the kubelet owns and another has written.
type writtenFields struct {
	phase, containers bool
	conditions        []v1.PodConditionType
}

func (f writtenFields) empty() bool { return !f.phase && !f.containers && len(f.conditions) == 0 }

func (f writtenFields) has(d fieldDiff) bool {
	return d.field == "phase" && f.phase || d.container != "" && f.containers || slices.Contains(f.conditions, v1.PodConditionType(d.field))
}

// explains reports whether a field is not true because of these: conditions follow from the phase.
func (f writtenFields) explains(d fieldDiff) bool {
	return f.has(d) || f.phase && slices.Contains(compared, v1.PodConditionType(d.field))
}

func (f writtenFields) and(g writtenFields) writtenFields {
	return writtenFields{phase: f.phase || g.phase, containers: f.containers || g.containers, conditions: slices.Concat(f.conditions, g.conditions)}
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
	// The write itself is seen: no news of it is waited for.
	return finding{Difference: d, needs: needs, fresh: needs}
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
	if w.ownStatus(p) {
		// What another wrote is compared as it is: a phase that was made terminal would stay so.
		own := podstatus.Normalize(p.kubelet.Pod, &p.kubelet.Pod.Status)
		return slices.DeleteFunc(statusDiff(&p.api.Pod.Status, &own), func(d fieldDiff) bool { return !fields.has(d) }), SideKubelet
	}
	if w.RuntimeAnswer.Known() {
		if diffs := w.runtimeDiff(p, fields); len(diffs) > 0 {
			return diffs, SideRuntime
		}
	}
	return derivedDiff(p.api.Pod, fields), SideAPI
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
			if found != nil || c.missing || wrongExit(p, st) {
				list = append(list, fieldDiff{field: fmt.Sprintf("container %q", name), container: name, is: stateWords(st), was: was})
			}
		}
	}
	if running := p.running(); fields.phase && len(running) > 0 && podstatus.IsTerminal(status.Phase) {
		list = append(list, fieldDiff{field: "phase", is: string(status.Phase), was: fmt.Sprintf("container %q runs", running[0].Name)})
	}
	return list
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

// foreignFields are the fields of the entry that the kubelet owns, without those that parts of the
// control plane write by right.
func foreignFields(e metav1.ManagedFieldsEntry, status *v1.PodStatus) writtenFields {
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
	var conditions map[string]map[string]json.RawMessage
	if json.Unmarshal(set.Status["f:conditions"], &conditions) == nil {
		for _, t := range compared {
			if members, ok := conditions[fmt.Sprintf(`k:{"type":"%s"}`, t)]; ok {
				if _, ok := members["f:status"]; ok {
					fields.conditions = append(fields.conditions, t)
				}
			}
		}
	}
	if e.Manager == "kube-controller-manager" {
		return byController(fields, status)
	}
	return fields
}

// byController takes out what the controller manager may write: node-lifecycle sets Ready to False on
// a node that is gone, and the garbage collector of pods ends those that no node will end.
func byController(f writtenFields, status *v1.PodStatus) writtenFields {
	if status.Phase == v1.PodFailed {
		f.phase = false
	}
	f.conditions = slices.DeleteFunc(f.conditions, func(t v1.PodConditionType) bool {
		c := podstatus.FindCondition(status.Conditions, t)
		return c == nil || c.Status != v1.ConditionTrue
	})
	return f
}

// kubeletWriters are the names under which the kubelet writes: its usual one, that of the writer of the
// node's lease, and if that is not known, those of writers of what only a kubelet writes of a pod. A
// distribution may build it into a program of another name. A program that writes whole statuses of
// pods, as simulators of nodes do, is none.
func kubeletWriters(f Facts) map[string]bool {
	names := map[string]bool{"kubelet": true}
	leased := false
	if f.Lease != nil {
		for _, e := range f.Lease.ManagedFields {
			if owns(e, "f:renewTime") {
				names[e.Manager] = true
				leased = true
			}
		}
	}
	if leased {
		return names
	}
	for _, s := range f.APIPods {
		if s.Pod == nil {
			continue
		}
		for _, e := range s.Pod.ManagedFields {
			if e.Subresource == "status" && e.Operation == metav1.ManagedFieldsOperationUpdate && owns(e, "f:hostIP") && owns(e, "f:startTime") {
				names[e.Manager] = true
			}
		}
	}
	return names
}

func owns(e metav1.ManagedFieldsEntry, field string) bool {
	return e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"`+field+`"`)
}
