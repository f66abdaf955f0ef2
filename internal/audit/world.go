package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// podView is all that the sides have of one pod. It is found by the UID that the node uses: that of
// the static pod for a mirror pod.
type podView struct {
	nodeUID types.UID
	ref     Ref
	api     *Sighting
	// kubelet is nil if the kubelet does not answer; lastKubelet is from its last answer.
	kubelet, lastKubelet *Sighting
	// attempts are the containers of the runtime by name, the newest first.
	attempts  map[string][]Container
	sandboxes []Sandbox
	dir       *PodDir
	cgroup    *Cgroup
}

// world is the facts joined by pod.
type world struct {
	Facts
	pods []*podView
	// writers are the names under which the kubelet of this node writes.
	writers map[string]bool
	// leaseQuiet is for how long the lease has been the same, if that is known.
	leaseQuiet time.Duration
}

func newWorld(f Facts) *world {
	byUID := map[types.UID]*podView{}
	view := func(uid types.UID) *podView {
		p := byUID[uid]
		if p == nil {
			p = &podView{nodeUID: uid, ref: Ref{UID: uid}, attempts: map[string][]Container{}}
			byUID[uid] = p
		}
		return p
	}
	w := &world{Facts: f, writers: kubeletWriters(f)}
	joinRuntime(f, view)
	for uid, s := range f.KubeletPods {
		if s.Pod == nil || podstatus.IsMirror(s.Pod) {
			continue // the static pod itself is in the list
		}
		p := view(uid)
		if p.lastKubelet = &s; w.kubeletAnswers() {
			p.kubelet = &s
		}
		p.ref = refOf(s.Pod)
	}
	for _, s := range f.APIPods {
		if s.Pod == nil {
			continue
		}
		p := view(nodeUID(s.Pod))
		if p.api != nil && !newerMirror(s.Pod, p.api.Pod) {
			continue
		}
		p.api = &s
		p.ref = refOf(s.Pod)
	}
	joinMachine(f, view)
	for _, p := range byUID {
		p.sort() // the order of a map must decide nothing
	}
	w.pods = slices.SortedFunc(maps.Values(byUID), func(a, b *podView) int {
		return cmp.Or(cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name), cmp.Compare(a.ref.UID, b.ref.UID))
	})
	return w
}

func joinRuntime(f Facts, view func(types.UID) *podView) {
	for _, s := range f.Sandboxes {
		if s.UID == "" {
			continue // not of a pod
		}
		p := view(s.UID)
		p.sandboxes = append(p.sandboxes, s)
		p.ref.Namespace, p.ref.Name = s.Namespace, s.Name
	}
	for _, c := range f.Containers {
		if c.UID == "" {
			continue
		}
		p := view(c.UID)
		p.attempts[c.Name] = append(p.attempts[c.Name], c)
		p.ref.Namespace, p.ref.Name = c.Namespace, c.PodName
	}
}

func (p *podView) sort() {
	for _, list := range p.attempts {
		slices.SortFunc(list, newestFirst)
	}
	slices.SortFunc(p.sandboxes, func(a, b Sandbox) int {
		return cmp.Or(-cmp.Compare(a.Attempt, b.Attempt), -a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
}

func newestFirst(a, b Container) int {
	return cmp.Or(-cmp.Compare(a.Attempt, b.Attempt), -a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
}

func joinMachine(f Facts, view func(types.UID) *podView) {
	for uid, d := range f.PodDirs {
		view(uid).dir = &d
	}
	for uid, c := range f.Cgroups {
		view(uid).cgroup = &c
	}
}

// nodeUID is the UID that the node uses for a pod of the API: for a mirror that of its static pod,
// which is its hash.
func nodeUID(pod *v1.Pod) types.UID {
	if hash := pod.Annotations[v1.MirrorPodAnnotationKey]; hash != "" {
		return types.UID(hash)
	}
	return pod.UID
}

// newerMirror chooses between two mirrors of one static pod. It prefers a mirror that is not being
// deleted.
func newerMirror(a, b *v1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return a.DeletionTimestamp == nil
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) > 0
}

func refOf(pod *v1.Pod) Ref { return Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name} }

// pod is the object to read the spec from, nil if neither API nor kubelet has it.
func (p *podView) pod() *v1.Pod {
	switch {
	case p.api != nil:
		return p.api.Pod
	case p.kubelet != nil:
		return p.kubelet.Pod
	}
	return nil
}

// newest is the newest attempt of a container, nil if the runtime has none.
func (p *podView) newest(name string) *Container {
	if list := p.attempts[name]; len(list) > 0 {
		return &list[0]
	}
	return nil
}

// byID finds the container that a status names, nil if the runtime does not have it.
func (p *podView) byID(name, id string) *Container {
	for i, c := range p.attempts[name] {
		if c.ID == id && id != "" {
			return &p.attempts[name][i]
		}
	}
	return nil
}

// running are the containers that the runtime runs, by name.
func (p *podView) running() []Container {
	var list []Container
	for _, name := range slices.Sorted(maps.Keys(p.attempts)) {
		for _, c := range p.attempts[name] {
			if c.State == ContainerRunning {
				list = append(list, c)
			}
		}
	}
	return list
}

// sandboxReady reports whether the sandbox of the container is ready.
func (p *podView) sandboxReady(id string) bool {
	for _, s := range p.sandboxes {
		if s.ID == id {
			return s.Ready
		}
	}
	return false
}

// bareID is the ID of a container without the name of its runtime.
func bareID(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		return bare
	}
	return id
}

// ownStatus reports whether the kubelet answers and its status of this pod is its own decision.
func (w *world) ownStatus(p *podView) bool {
	return w.kubeletAnswers() && p.kubelet != nil && (w.KubeletStatuses || podstatus.IsStatic(p.kubelet.Pod))
}

// reported is the status that the runtime is compared with, and the side that says so: the kubelet's
// own if it is known, else the API's, which is what the kubelet wrote last.
func (w *world) reported(p *podView) (*v1.PodStatus, Side) {
	switch {
	case w.ownStatus(p):
		return &p.kubelet.Pod.Status, SideKubelet
	case w.APIAnswer.Known() && p.api != nil:
		return &p.api.Pod.Status, SideAPI
	}
	return nil, ""
}

// startGrace is how long a kubelet that has started may know little: its list of pods is partial
// until its sources are ready, and it looks at all of its pods first.
const startGrace = time.Minute

// bootGrace is how long after the start of the machine the kubelet may not run yet.
const bootGrace = 2 * startGrace

// kubeletStarting reports whether the machine or the kubelet has started, or the kubelet has come back,
// only now.
func (w *world) kubeletStarting() bool {
	if w.MachineAnswer.Known() && recent(w.Boot, w.Now, bootGrace) {
		return true
	}
	if w.Process != nil && recent(w.Process.Started, w.Now, startGrace) {
		return true
	}
	return w.KubeletAnswer.Known() && recent(w.KubeletAnswer.Since, w.Now, startGrace/2)
}

// kubeletStopped reports whether the kubelet's process is stopped by a signal or frozen.
func (w *world) kubeletStopped() bool {
	return w.MachineAnswer.Known() && w.Process != nil && (w.Process.Stopped || w.Process.Frozen)
}

// kubeletAnswers reports whether what the kubelet says is current. A process that is stopped says
// nothing, even if that was not noticed by asking it yet.
func (w *world) kubeletAnswers() bool { return w.KubeletAnswer.Known() && !w.kubeletStopped() }

// kubeletLists reports whether the kubelet's list is complete: a pod that it lacks is not a pod of
// the kubelet.
func (w *world) kubeletLists() bool { return w.kubeletAnswers() && !w.kubeletStarting() }

// kubeletHalted reports whether the kubelet is known not to run: its process is stopped or gone.
func (w *world) kubeletHalted() bool {
	return w.kubeletStopped() || w.MachineAnswer.Known() && w.ProcessKnown && w.Process == nil && !w.KubeletAnswer.Known()
}

// deadlines are the times at which something is concluded from nothing having happened.
func (w *world) deadlines() []time.Time {
	list := []time.Time{w.leaseEnd()}
	for _, p := range w.pods {
		if p.api != nil && deleting(p.api.Pod) {
			list = append(list, w.machineTime(p.api.Pod.DeletionTimestamp.Time))
		}
	}
	if w.kubeletStarting() {
		if w.Process != nil {
			list = append(list, w.Process.Started.Add(startGrace))
		}
		list = append(list, w.KubeletAnswer.Since.Add(startGrace/2), w.Boot.Add(bootGrace))
	}
	return list
}

func recent(t, now time.Time, within time.Duration) bool {
	return !t.IsZero() && now.Sub(t) < within && now.Sub(t) > -within
}

// machineTime is an instant of the server's clock on this machine's.
func (w *world) machineTime(t time.Time) time.Time {
	if t.IsZero() || w.ClockAt.IsZero() {
		return t
	}
	return t.Add(-w.Clock)
}

// evidence is what a side says, with when it was known to be so.
func (w *world) evidence(s Side, at time.Time, text string) Evidence {
	a := w.answer(s)
	if at.IsZero() {
		at = a.At
	}
	return Evidence{Side: s, At: at, From: a.From, Text: text}
}

func (f Facts) answer(s Side) Answer {
	switch s {
	case SideAPI:
		return f.APIAnswer
	case SideKubelet:
		return f.KubeletAnswer
	case SideRuntime:
		return f.RuntimeAnswer
	case SideMachine:
		return f.MachineAnswer
	}
	return Answer{}
}
