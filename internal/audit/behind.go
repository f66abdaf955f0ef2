package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// fieldDiff is one statement of a status that another status contradicts.
type fieldDiff struct {
	field     string // phase, Ready, container "db"
	container string // the name, if it is about one
	is, was   string // what the first and the second status say
}

// compared are the condition types that are compared by status. The others that the node owns say
// nothing that is not in these or in a container, or (resize, scheduling) belong to the API's side.
var compared = []v1.PodConditionType{v1.PodReady, v1.ContainersReady, v1.PodInitialized}

// statusDiff compares two statuses by the fields that users act on: phase, conditions, and of each
// container state, exit code, ID, restarts and readiness. Fields that may differ by the rules of the
// API are left out: times (whole seconds), addresses, generations, messages, resources, conditions of
// other owners, and entries that only one of the two has.
func statusDiff(a, b *v1.PodStatus) []fieldDiff {
	var list []fieldDiff
	if a.Phase != b.Phase && a.Phase != "" && b.Phase != "" {
		list = append(list, fieldDiff{field: "phase", is: string(a.Phase), was: string(b.Phase)})
	}
	for _, t := range compared {
		ca, cb := podstatus.FindCondition(a.Conditions, t), podstatus.FindCondition(b.Conditions, t)
		if ca != nil && cb != nil && ca.Status != cb.Status {
			list = append(list, fieldDiff{field: string(t), is: string(ca.Status), was: string(cb.Status)})
		}
	}
	for _, lists := range [][2][]v1.ContainerStatus{{a.InitContainerStatuses, b.InitContainerStatuses}, {a.ContainerStatuses, b.ContainerStatuses}} {
		for i := range lists[0] {
			name := lists[0][i].Name
			at := slices.IndexFunc(lists[1], func(s v1.ContainerStatus) bool { return s.Name == name })
			if at < 0 {
				continue
			}
			if is, was := containerDiff(&lists[0][i], &lists[1][at]); is != was {
				list = append(list, fieldDiff{field: fmt.Sprintf("container %q", name), container: name, is: is, was: was})
			}
		}
	}
	return list
}

// containerDiff are the statements of two container statuses that differ, equal if none does.
func containerDiff(a, b *v1.ContainerStatus) (is, was string) {
	switch {
	case stateKind(a) != stateKind(b):
		return stateWords(a), stateWords(b)
	case a.State.Terminated != nil && a.State.Terminated.ExitCode != b.State.Terminated.ExitCode:
		return stateWords(a), stateWords(b)
	case a.RestartCount != b.RestartCount:
		return "restarted " + times(int64(a.RestartCount)), "restarted " + times(int64(b.RestartCount))
	case bareID(a.ContainerID) != bareID(b.ContainerID) && a.ContainerID != "" && b.ContainerID != "":
		return "ID " + short(bareID(a.ContainerID)), "ID " + short(bareID(b.ContainerID))
	case a.Ready != b.Ready:
		return readyWord(a.Ready), readyWord(b.Ready)
	}
	return "", ""
}

func readyWord(ready bool) string {
	if ready {
		return "ready"
	}
	return "not ready"
}

// stateKind is the state of a container in one word.
func stateKind(s *v1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return "running"
	case s.State.Terminated != nil:
		return "terminated"
	case s.State.Waiting != nil:
		return "waiting"
	}
	return "unknown"
}

// apiBehindKubelet is the finding for a pod whose status in the API differs from the kubelet's own
// status, as the kubelet would write it: conditions of other owners are taken from the API, and a
// terminal phase is withheld while a container runs.
func (w *world) apiBehindKubelet(p *podView, written writtenFields, containers []finding) []finding {
	if !w.APIAnswer.Known() || p.api == nil || !w.ownStatus(p) || p.kubelet.Pod.Status.Phase == "" {
		return nil
	}
	diffs := slices.DeleteFunc(w.ownDiff(p), func(d fieldDiff) bool {
		return written.explains(d) || slices.ContainsFunc(containers, func(f finding) bool { return d.container != "" && f.Container == d.container })
	})
	if len(diffs) == 0 {
		return nil
	}
	f := finding{
		Difference: Difference{Kind: APIBehindKubelet, Pod: p.ref, Since: p.kubelet.At, Certainty: Certain,
			Do: "Look at the kubelet's log for refused or failing status updates: the network, its client certificate, admission webhooks on pods/status."},
		needs: []Side{SideAPI, SideKubelet}, fresh: []Side{SideAPI, SideKubelet}, news: SideAPI,
	}
	if podstatus.IsTerminal(p.api.Pod.Status.Phase) && !podstatus.IsTerminal(p.kubelet.Pod.Status.Phase) {
		f.allow = grace(p.api.Pod) + leftoverAllowance // the API has ended it, and the kubelet stops it
	}
	// A container says most: phase and conditions follow from it.
	slices.SortStableFunc(diffs, func(a, b fieldDiff) int { return -cmp.Compare(min(len(a.container), 1), min(len(b.container), 1)) })
	var api, own []string
	for _, d := range diffs {
		api = append(api, d.field+" "+d.is)
		own = append(own, d.field+" "+d.was)
	}
	names := diffContainers(diffs)
	if len(names) == 1 {
		f.Container = names[0]
	}
	f.Message = fmt.Sprintf("The API has an older status of %s/%s than the kubelet: %s, which the kubelet says is %s.", p.ref.Namespace, p.ref.Name, api[0], diffs[0].was)
	f.behind = p.api.Pod.ResourceVersion + " " + strings.Join(api, ", ")
	f.recurs = fmt.Sprintf("%d %s", p.kubelet.At.UnixNano(), strings.Join(own, ", "))
	if p.api.At.After(w.KubeletAnswer.At) {
		f.older = SideKubelet
	}
	f.foreign = w.RuntimeAnswer.Known() && slices.ContainsFunc(p.api.Pod.Status.ContainerStatuses, func(s v1.ContainerStatus) bool {
		newest, id := p.newest(s.Name), bareID(s.ContainerID)
		return newest != nil && newest.State == ContainerRunning && s.State.Running != nil && id != "" && p.byID(s.Name, id) == nil
	})
	f.Evidence = []Evidence{
		w.evidence(SideAPI, p.api.At, strings.Join(api, ", ")),
		w.evidence(SideKubelet, p.kubelet.At, strings.Join(own, ", ")),
	}
	return []finding{f}
}

// ownDiff compares the API's status with what the kubelet would write over it.
func (w *world) ownDiff(p *podView) []fieldDiff {
	api := p.api.Pod
	if !podrules.NeedsReconcile(p.kubelet.Pod, &api.Status, &p.kubelet.Pod.Status) {
		return nil // nearly always
	}
	own := podrules.Normalize(p.kubelet.Pod, &p.kubelet.Pod.Status)
	couldRun := !w.RuntimeAnswer.Known() || len(p.running()) > 0
	merged := podrules.Merge(api, &api.Status, &own, couldRun, w.Now)
	return statusDiff(&api.Status, &merged)
}

func diffContainers(diffs []fieldDiff) []string {
	var names []string
	for _, d := range diffs {
		if d.container != "" {
			names = append(names, d.container)
		}
	}
	return names
}

// otherAddress is a pod whose address in the API is not that of its sandbox although no other writer has written the address: the kubelet is
// behind a sandbox that was made again, or the API server has changed what the kubelet wrote, as an admission policy may.
func (w *world) otherAddress(p *podView, written writtenFields) []finding {
	if !w.APIAnswer.Known() || !w.RuntimeAnswer.Known() || p.api == nil || written.podIP || podstatus.IsTerminal(p.api.Pod.Status.Phase) || deleting(p.api.Pod) {
		return nil
	}
	diffs := sandboxDiff(p)
	if len(diffs) == 0 {
		return nil
	}
	is, was := diffs[0].is, diffs[0].was
	f := finding{
		Difference: Difference{Kind: KubeletBehindRuntime, Pod: p.ref, Subject: fieldPodIP, Since: p.api.At, Certainty: Certain,
			Message:  fmt.Sprintf("The API says that %s/%s has the address %s, but the runtime says that its sandbox has %s.", p.ref.Namespace, p.ref.Name, is, was),
			Evidence: []Evidence{w.evidence(SideAPI, p.api.At, "podIP "+is), w.evidence(SideRuntime, time.Time{}, "address of the sandbox "+was)},
			Do:       "Find out what changes the status on its way, as a mutating admission webhook or policy on pods/status, or look at the kubelet's log for this pod. Traffic for the pod goes to another address."},
		needs: []Side{SideAPI, SideRuntime}, fresh: []Side{SideAPI, SideRuntime}, news: SideAPI, recurs: was,
	}
	if w.kubeletHalted() {
		f.Do = w.doProcess()
	}
	return []finding{f}
}
