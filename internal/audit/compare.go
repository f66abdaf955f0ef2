package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/statusd/statusd/podstatus"
)

// Compare returns the differences at one instant, the node's first, then the pods' by name. It has
// no history: a difference may be a change in transit. [Auditor] decides which differences last.
//
// One cause gives one difference. In this order, an earlier finding explains the later ones:
//
//  1. [StuckTerminating]: a pod past its deletion deadline. Its remaining containers, mounts and
//     directories are listed as what blocks the deletion.
//  2. [ForeignWriter]: a field that another writer has written has no further differences.
//  3. [UnreportedRestart], [KubeletBehindRuntime], [RunningWithoutContainer]: for a container one of
//     them, by what the runtime has: a newer attempt, the same one in another state, none.
//  4. [APIBehindKubelet]: a difference from the kubelet's own status that is not explained above.
//  5. [ForeignWriter] again, without a name: a status that contradicts itself. It explains [ReadyOnDeadNode] and [FrozenContainer].
//
// A pod that neither API nor kubelet has is [ContainerWithoutPod] if one of its containers runs, else
// [OrphanedPodDirectory] if its directory is left. A pod that the API does not have and the kubelet still
// runs is [ContainerWithoutPod] too, and so is a container that its pod's spec does not have; neither is
// repaired. [MirrorWithoutManifest] explains all differences of its pod. [LeaseStale], [ClockSkew],
// [TwoKubelets], [APIRestored] and a [ForeignWriter] of the Node or its lease are differences of the node, in
// addition to the differences of its pods.
//
// A side that does not answer is left out: neither missing objects nor its last answer prove anything.
// Without the kubelet, the API is compared with the runtime.
func Compare(f Facts) []Difference {
	var list []Difference
	for _, found := range newWorld(f).compare() {
		d := found.Difference
		d.Seen = f.Now
		list = append(list, d)
	}
	return list
}

// finding is a difference with what decides when it is drift.
type finding struct {
	Difference
	// needs are the sides that show the difference. While one of them does not answer, the difference
	// cannot be resolved.
	needs []Side
	// fresh are the sides that must have answered after the time that news takes.
	fresh []Side
	// news is the side whose propagation is waited for; allow is waited for in addition.
	news  Side
	allow time.Duration
	// atOnce: news cannot come, because the kubelet is halted.
	atOnce bool
	// stamp is when it was measured, for what must be measured twice.
	stamp time.Time
	// recurs is what the side that is right says, with what changes whenever the side changes its mind; empty: not known. A difference that
	// vanishes and comes back while that stays the same is no news on its way: see returns.go.
	recurs string
	// older is the side that is right but has not answered since the copy of the other side arrived, so the other side may be newer; empty: no such
	// side. With older set, the difference does not count as come back.
	older Side
	// foreign: the API names a container that this runtime does not have, instead of a running one.
	foreign bool
	// onReturn: nothing contradicts it, and it is drift only if it comes back.
	onReturn bool
	// behind is what the side that is behind says. If that changes, the side makes progress, and what
	// it lacks now is news again.
	behind string
}

func (w *world) compare() []finding {
	list := slices.Concat(w.lease(), w.clock(), w.otherMachine(), w.nodeWriters(), w.withoutReady(), w.leaseHolder(), w.leaseDuration(), w.leaseRenewer())
	for _, p := range w.pods {
		list = append(list, w.comparePod(p)...)
	}
	for i := range list {
		d := &list[i].Difference
		if d.Since.IsZero() || d.Since.After(w.Now) {
			d.Since = w.Now
		}
	}
	return list
}

// comparePod applies the order that Compare documents.
func (w *world) comparePod(p *podView) []finding {
	if p.api == nil && p.kubelet == nil {
		return w.leftover(p)
	}
	if found := w.mirrorWithoutManifest(p); found != nil {
		return found
	}
	if found := w.stuckTerminating(p); found != nil {
		return found
	}
	foreign, written := w.foreignWriters(p)
	list := foreign
	var containers []finding
	if !written.containers {
		containers = w.compareContainers(p)
		list = append(list, containers...)
	}
	list = append(list, w.apiBehindKubelet(p, written, containers)...)
	list = slices.Concat(list, w.otherAddress(p, written), w.intruders(p))
	if len(list) == 0 {
		list = w.inconsistent(p)
	}
	if len(list) == 0 {
		list = slices.Concat(w.readyOnDeadNode(p), w.unknownToAPI(p), w.frozen(p))
	}
	return list
}

// compareContainers compares the reported state of each container with the runtime's.
func (w *world) compareContainers(p *podView) []finding {
	status, by := w.reported(p)
	if status == nil || !w.RuntimeAnswer.Known() {
		return nil
	}
	if by == SideAPI && w.kubeletAnswers() && p.kubelet == nil && w.kubeletLists() {
		return w.unknownToKubelet(p)
	}
	var list []finding
	var missing []string
	for _, name := range containerNames(p.pod()) {
		st := podstatus.FindContainerStatus(status, name)
		c := comparison{w: w, p: p, by: by, name: name, status: st}
		switch found := c.compare(); {
		case found != nil:
			list = append(list, *found)
		case c.missing:
			missing = append(missing, name)
		}
	}
	if p.bare(status) {
		missing = regularNames(p.pod())
	}
	if len(missing) > 0 {
		list = append(list, w.runningWithoutContainer(p, by, missing))
	}
	return list
}

// order sorts differences as reports show them.
func order(a, b Difference) int {
	return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Pod.UID, b.Pod.UID),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Subject, b.Subject))
}
