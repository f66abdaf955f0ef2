package oracle

import (
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/statusd/statusd/podstatus"
)

// doContainer is an event of a container of the pod: its own, or a probe result.
func (r *run) doContainer(p *nodePod, step Step) {
	c := p.find(step.arg(0))
	if c == nil {
		return
	}
	switch step.Op {
	case "run":
		p.run(c, step)
	case "exit":
		c.exit(step)
	case "wait":
		c.wait(step)
	case "ready", "started":
		r.probe(p, c, step)
	}
}

// probe passes on a probe result. The word old makes it one of a container that is no more.
func (r *run) probe(p *nodePod, c *container, step Step) {
	value, id := step.has("true"), c.id
	if step.has("old") {
		id += "-old"
	} else if step.Op == "ready" {
		c.ready = value
	} else {
		c.started = new(value)
	}
	lenient := wouldRefuse(p, r.before(p, theKubelet))
	p.staleGate = p.staleGate || step.Op == "ready" && r.hasStaleGate(p)
	pass := func(s side) {
		if step.Op == "ready" {
			s.ready(p.uid(), id, value)
		} else {
			s.started(p.uid(), id, value)
		}
	}
	r.kubelet().leniently(lenient, func() { pass(r.kubelet()) })
	pass(r.sides[theStatusd])
}

// hasStaleGate says that the kubelet's cache has another condition of the readiness gate than
// the newest copy of its API's pod.
func (r *run) hasStaleGate(p *nodePod) bool {
	cached, ok := r.sides[theKubelet].cached(p.uid())
	if !ok || len(p.spec.Spec.ReadinessGates) == 0 {
		return false
	}
	var newest []v1.PodCondition
	for _, pod := range r.delivered[theKubelet] {
		if pod.Name == p.name && (p.static || pod.UID == p.uid()) {
			newest = pod.Status.Conditions
		}
	}
	status := func(list []v1.PodCondition) v1.ConditionStatus {
		if c := podstatus.FindCondition(list, gateType); c != nil {
			return c.Status
		}
		return ""
	}
	return status(cached.Conditions) != status(newest)
}

// doReport is a report of the pod's worker to the manager.
func (r *run) doReport(p *nodePod, step Step) {
	switch step.Op {
	case "stop":
		// A phase that was withheld follows at the kubelet's next tick, and at the end of a
		// backoff of statusd's.
		p.mayRun = false
		r.sleep(11 * time.Second)
	case "report":
		r.report(p, step)
	case "terminate":
		r.terminate(p)
	case "resize":
		r.resize(p, step)
	}
}

// held returns the pod object that the worker of a side holds: the manifest, or the newest copy of
// the API's pod that the watch has shown. For a deleted pod it is the spec.
func (r *run) held(p *nodePod, i int) *v1.Pod {
	if pod, ok := r.sides[i].known(p.uid()); ok {
		return pod
	}
	return p.spec.DeepCopy()
}

func (r *run) report(p *nodePod, step Step) {
	if step.has("duplicate") && r.hasTwoGenerations(p) {
		r.catchUp()
	}
	var conditions []v1.PodCondition
	if pod := r.sides[theKubelet].server().current(p.name); pod != nil {
		conditions = pod.Status.Conditions
	}
	if shown := min(r.held(p, theKubelet).Generation, r.held(p, theStatusd).Generation); shown != p.spec.Generation {
		p.spec = p.spec.DeepCopy() // the worker reports for the generation that the watch has shown it
		p.spec.Generation = shown
	}
	status := p.report(step, conditions, r.sides[theKubelet].resizeConditions(p.uid()))
	p.readyAtEnd = p.readyAtEnd || podstatus.IsTerminal(status.Phase) && saysReady(&status)
	p.answer(theKubelet, "report changed=%v", r.reportToKubelet(p, *status.DeepCopy()))
	d := r.sides[theStatusd]
	before := r.before(p, theStatusd).DeepCopy()
	changed := d.report(r.held(p, theStatusd), *status.DeepCopy())
	p.answer(theStatusd, "report changed=%v", changed)
	if changed {
		p.expected.stored(before, &status)
		p.finished = p.finished && !p.static
	}
	p.hadCached = p.hadCached || p.hasCached(r.kubelet())
}

// hasTwoGenerations reports whether the APIs have Ready with different generations: the kubelet has
// overwritten another writer's change, whereas statusd, which had nothing to write, overwrites the
// change when the watch shows it. A report of Ready without a generation keeps the API's
// generation.
func (r *run) hasTwoGenerations(p *nodePod) bool {
	var generations [2]int64
	for i, s := range r.sides {
		if pod := s.server().current(p.name); pod != nil {
			if c := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady); c != nil {
				generations[i] = c.ObservedGeneration
			}
		}
	}
	return generations[0] != generations[1]
}

// before is the status that a report is compared with (U5).
func (r *run) before(p *nodePod, i int) *v1.PodStatus {
	if cached, ok := r.sides[i].cached(p.uid()); ok {
		return cached
	}
	for _, pod := range r.delivered[i] {
		if p.static && pod.Name == p.name {
			return &pod.Status
		}
	}
	return &r.held(p, i).Status
}

func (p *nodePod) hasCached(s side) bool {
	_, ok := s.cached(p.uid())
	return ok
}

func (p *nodePod) answer(side int, format string, args ...any) {
	p.calls[side] = append(p.calls[side], fmt.Sprintf(format, args...))
}

func (r *run) terminate(p *nodePod) {
	p.terminated, p.finished = true, true
	p.expected.end(p.static)
	if !p.static && p.ended == "" {
		p.ended = v1.PodFailed
	}
	r.terminateOnKubelet(p)
	r.sides[theStatusd].terminate(r.held(p, theStatusd))
	p.hadCached = true
}

// missesStart says that the pod has initialized and that the kubelet does not see it (K3): it
// looks at the pod object alone, and there at the last init status only if that stands where
// the spec has the container.
func (r *run) missesStart(p *nodePod) bool {
	pod := r.held(p, theKubelet)
	seen := pod.Status
	specs, last := pod.Spec.InitContainers, len(seen.InitContainerStatuses)-1
	if last >= len(specs) || last >= 0 && specs[last].Name != seen.InitContainerStatuses[last].Name {
		seen.InitContainerStatuses = nil
	}
	if podstatus.HasInitialized(pod, &seen) {
		return false
	}
	cached, ok := r.sides[theKubelet].cached(p.uid())
	return podstatus.HasInitialized(pod, &pod.Status) || ok && podstatus.HasInitialized(pod, cached)
}

// resize sets or clears a resize condition: "pending REASON GENERATION", "progress REASON
// GENERATION", "no-pending", "no-progress", "backfill".
func (r *run) resize(p *nodePod, step Step) {
	reason := step.arg(1)
	generation, _ := strconv.ParseInt(step.arg(2), 10, 64)
	generation = max(generation, 1)
	message := ""
	if reason != "" {
		message = "because of " + reason
	}
	for i, s := range r.sides {
		switch step.arg(0) {
		case "pending":
			p.answer(i, "resize pending %v", s.resizePending(p.uid(), reason, message, generation))
		case "progress":
			generation, changed := s.resizeInProgress(p.uid(), reason, message, generation)
			p.answer(i, "resize in progress %d %v", generation, changed)
		case "no-pending":
			s.clearResizePending(p.uid())
		case "no-progress":
			generation, cleared := s.clearResizeInProgress(p.uid())
			p.answer(i, "resize done %d %v", generation, cleared)
		case "backfill":
			if pod, ok := s.known(p.uid()); ok {
				s.backfillResize([]*v1.Pod{pod})
			}
		}
	}
}

// doAPI is what others do to the pod in the API, the same in both. The word late keeps the
// watch from showing it at once.
func (r *run) doAPI(p *nodePod, step Step) {
	switch step.Op {
	case "vanish", "recreate", "forget", "mirror":
		r.catchUp()
	}
	switch step.Op {
	case "vanish":
		r.onServers(func(s *Server) { s.remove(p.name) })
	case "recreate":
		if !p.static {
			r.addPod(p.step, len(r.pods)+1)
		}
	case "forget": // the manifest is gone
		p.forgotten = p.static
		if p.static {
			r.kubelet().tally.count(correctM0)
		}
		for _, s := range r.sides {
			if pod, ok := s.known(p.uid()); ok && p.static {
				s.removePod(pod)
			}
		}
	case "mirror":
		if p.static {
			p.mirrors++
			r.onServers(func(s *Server) { s.create(p.apiPod()) })
		}
	case "delete":
		at, first := now(), false
		r.change(p, func(pod *v1.Pod) {
			if pod.DeletionTimestamp == nil {
				pod.DeletionTimestamp = new(at.Rfc3339Copy())
				pod.DeletionGracePeriodSeconds = new(int64(30))
				pod.Generation++
				first = true
			}
		})
		if first && !p.static {
			p.spec = p.spec.DeepCopy()
			p.spec.Generation++
		}
	case "write":
		if edit, ok := secondWriters[step.arg(0)]; ok {
			if step.arg(0) == "generation" && !p.static {
				p.spec = p.spec.DeepCopy()
				p.spec.Generation++
			}
			r.change(p, edit)
			if step.arg(0) == "failed" {
				p.expected.end(false)
				r.unreadyOnKubelet(p)
			}
		}
	}
}

func (r *run) onServers(do func(*Server)) {
	for _, s := range r.sides {
		do(s.server())
	}
}

func (r *run) change(p *nodePod, edit func(*v1.Pod)) {
	r.onServers(func(s *Server) { s.change(p.name, edit) })
}

// secondWriters are what others than the node write to a pod.
var secondWriters = map[string]func(*v1.Pod){
	"gate-true":  writeCondition(v1.PodCondition{Type: gateType, Status: v1.ConditionTrue}),
	"gate-false": writeCondition(v1.PodCondition{Type: gateType, Status: v1.ConditionFalse}),
	"foreign":    writeCondition(v1.PodCondition{Type: foreignType, Status: v1.ConditionTrue, Reason: "FromOutside"}),
	// The node controller, when it has not heard of the node.
	"unready": writeCondition(v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "NodeNotReady"}),
	// The same by a controller that says for which generation of the pod.
	"unready-observed": writeCondition(v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "NodeNotReady", ObservedGeneration: 2}),
	// An eviction through the API.
	"disruption": writeCondition(v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI"}),
	// The pod garbage collector.
	"failed": func(pod *v1.Pod) {
		pod.Status.Phase, pod.Status.Reason = v1.PodFailed, "NodeLost"
	},
	"phase-running": func(pod *v1.Pod) { pod.Status.Phase = v1.PodRunning },
	"message":       func(pod *v1.Pod) { pod.Status.Message = "from outside" },
	"containers":    func(pod *v1.Pod) { pod.Status.ContainerStatuses = nil },
	"ips":           func(pod *v1.Pod) { pod.Status.PodIPs = append(pod.Status.PodIPs, v1.PodIP{IP: "10.9.9.9"}) },
	"no-conditions": func(pod *v1.Pod) { pod.Status.Conditions = nil },
	"claims": func(pod *v1.Pod) {
		pod.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("gpu-1")}}
		pod.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}
	},
	"nominated": func(pod *v1.Pod) { pod.Status.NominatedNodeName = "elsewhere" },
	"label": func(pod *v1.Pod) {
		pod.Labels = map[string]string{"touched": pod.ResourceVersion}
	},
	// A user changes the spec.
	"generation": func(pod *v1.Pod) { pod.Generation++ },
}

func writeCondition(c v1.PodCondition) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status.Conditions = withCondition(pod.Status.Conditions, stamped(c)) }
}

// fromAPI is a pod as a node has it that learned of it from the API.
func fromAPI(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	pod.Annotations[kubetypes.ConfigSourceAnnotationKey] = kubetypes.ApiserverSource
	return pod
}
