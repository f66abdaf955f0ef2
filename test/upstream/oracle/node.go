package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// gateType is the readiness gate that pods may have, foreignType a condition of others.
const (
	gateType    v1.PodConditionType = "example.com/gate"
	foreignType v1.PodConditionType = "example.com/foreign"
)

// nodePod is a pod as the simulated node runs it: what reports are made from. A pod that
// is created again under the same name is another nodePod.
type nodePod struct {
	name       string
	spec       *v1.Pod // as it was created, without a status
	static     bool
	containers []*container // init, regular, ephemeral, each in spec order
	// mayRun is what the pod's worker says to "could containers be running".
	mayRun  bool
	mirrors int // how many mirror pods there have been
	// forgotten: the manifest of the static pod is gone.
	forgotten bool
	step      Step // that created it
	// last is the newest report, ended the terminal phase that reports keep to, disrupted
	// that they say so.
	last      v1.PodStatus
	ended     v1.PodPhase
	disrupted bool
	// hadCached: the kubelet had a status of the pod when it was last looked at.
	hadCached bool
	// terminated: the pod was terminated. Finished: nothing was stored since, or the pod is not
	// static.
	terminated bool
	finished   bool
	// readyAtEnd: the pod had ended, in a report or in the API, while its status said that it is
	// ready (X6). It may show only when the containers stop.
	readyAtEnd bool

	// expected is what statusd must say of it.
	expected expectation

	facts
}

// facts are what happened to a pod since the two sides were last seen to agree, as far as
// it may explain a difference.
type facts struct {
	// calls are what the calls answered, of the kubelet and of statusd.
	calls [2][]string
	// staleGate: there was a probe result while the kubelet's cache had another condition of
	// the readiness gate than its API (H6).
	staleGate bool
}

func (p *nodePod) uid() types.UID { return p.spec.UID }

type containerKind int

const (
	initContainer containerKind = iota
	regularContainer
	ephemeralContainer
)

// container is a container of the simulated node.
type container struct {
	name     string
	kind     containerKind
	sidecar  bool
	id       string
	state    v1.ContainerState
	last     v1.ContainerState
	restarts int32
	ready    bool
	started  *bool
}

// newNodePod makes the pod that a "pod" step describes. Each word adds something:
//
//	always, onfailure, never   the restart policy (always by default)
//	init, sidecar, app, debug  one more container: i0, s0, c0, d0, ... (c0 is always there)
//	rule                       the last regular container restarts on exit code 42
//	restart-all                the last regular container restarts the whole pod on 43
//	own-never                  the last regular container has the policy Never of its own
//	gate                       a readiness gate
//	static                     from a manifest, with a mirror pod in the API
//	gen=N                      the generation
func newNodePod(step Step, incarnation int) *nodePod {
	p := &nodePod{name: step.Pod, static: step.has("static"), mayRun: true}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:   namespace,
		Name:        step.Pod,
		UID:         types.UID(fmt.Sprintf("%s-%d", step.Pod, incarnation)),
		Generation:  1,
		Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.ApiserverSource},
	}}
	if p.static {
		pod.Annotations[kubetypes.ConfigSourceAnnotationKey] = kubetypes.FileSource
	}
	if n, err := strconv.ParseInt(step.value("gen"), 10, 64); err == nil {
		pod.Generation = n
	}
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	for _, word := range step.Args {
		p.addWord(&pod.Spec, word)
	}
	if len(pod.Spec.Containers) == 0 {
		p.addWord(&pod.Spec, "app")
	}
	last := &pod.Spec.Containers[len(pod.Spec.Containers)-1]
	for _, word := range step.Args {
		addRestartRule(last, word)
	}
	slices.SortStableFunc(p.containers, func(a, b *container) int { return int(a.kind) - int(b.kind) })
	p.spec = pod
	return p
}

func (p *nodePod) addWord(spec *v1.PodSpec, word string) {
	switch word {
	case "always":
		spec.RestartPolicy = v1.RestartPolicyAlways
	case "onfailure":
		spec.RestartPolicy = v1.RestartPolicyOnFailure
	case "never":
		spec.RestartPolicy = v1.RestartPolicyNever
	case "gate":
		spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: gateType}}
	case "init", "sidecar":
		c := v1.Container{Name: fmt.Sprintf("%c%d", word[0], len(spec.InitContainers))}
		if word == "sidecar" {
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		spec.InitContainers = append(spec.InitContainers, c)
		p.add(c.Name, initContainer, word == "sidecar")
	case "app":
		c := v1.Container{Name: fmt.Sprintf("c%d", len(spec.Containers))}
		spec.Containers = append(spec.Containers, c)
		p.add(c.Name, regularContainer, false)
	case "debug":
		c := v1.EphemeralContainerCommon{Name: fmt.Sprintf("d%d", len(spec.EphemeralContainers))}
		spec.EphemeralContainers = append(spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: c})
		p.add(c.Name, ephemeralContainer, false)
	}
}

func addRestartRule(c *v1.Container, word string) {
	rule := func(action v1.ContainerRestartRuleAction, code int32) {
		c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
		c.RestartPolicyRules = append(c.RestartPolicyRules, v1.ContainerRestartRule{
			Action:    action,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{code}},
		})
	}
	switch word {
	case "rule":
		rule(v1.ContainerRestartRuleActionRestart, 42)
	case "restart-all":
		rule(v1.ContainerRestartRuleActionRestartAllContainers, 43)
	case "own-never":
		c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
	}
}

func (p *nodePod) add(name string, kind containerKind, sidecar bool) {
	p.containers = append(p.containers, &container{
		name: name, kind: kind, sidecar: sidecar,
		state: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "PodInitializing"}},
	})
}

// find returns the container of this name, nil if the pod has none.
func (p *nodePod) find(name string) *container {
	for _, c := range p.containers {
		if c.name == name {
			return c
		}
	}
	return nil
}

// run starts the container. Words: unready, unstarted, silent (whether it started is unknown).
func (p *nodePod) run(c *container, step Step) {
	if c.state.Terminated != nil {
		c.last = v1.ContainerState{Terminated: c.state.Terminated}
		c.restarts++
	}
	c.id = fmt.Sprintf("sim://%s/%s/%d", p.uid(), c.name, c.restarts)
	c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now()}}
	c.ready = !step.has("unready") && (c.kind == regularContainer || c.sidecar)
	c.started = new(!step.has("unstarted"))
	if step.has("silent") {
		c.started = nil
	}
}

// exit ends the container with a code. The word message=KIND gives it something to say.
func (c *container) exit(step Step) {
	code, _ := strconv.Atoi(step.arg(1))
	ended := &v1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: "Completed", FinishedAt: now(), ContainerID: c.id,
		Message: terminationMessage(step.value("message")),
	}
	if code != 0 {
		ended.Reason = "Error"
	}
	if c.state.Running != nil {
		ended.StartedAt = c.state.Running.StartedAt
	}
	c.state = v1.ContainerState{Terminated: ended}
	c.ready = code == 0 && c.kind == initContainer && !c.sidecar
	c.started = new(false)
}

// terminationMessage returns a text by its kind: long ones must be cut, "rune" has runes
// of two bytes and "snow" of three, so that a cut may fall into one.
func terminationMessage(kind string) string {
	switch kind {
	case "short":
		return "done <ok> & \"fine\""
	case "long":
		return strings.Repeat("x", 13000)
	case "rune":
		return "y" + strings.Repeat("é", 7000)
	case "snow":
		return "yz" + strings.Repeat("☃", 5000)
	case "stray":
		return "stray \xff byte"
	}
	return ""
}

// wait puts the container back to waiting, as between two tries.
func (c *container) wait(step Step) {
	if c.state.Terminated != nil {
		c.last = v1.ContainerState{Terminated: c.state.Terminated}
		c.restarts++
	}
	reason := step.arg(1)
	if reason == "" {
		reason = "CrashLoopBackOff"
	}
	c.state = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: "back-off"}}
	c.ready, c.started = false, new(false)
}

// status is what a reporter would say of the container.
func (c *container) status() v1.ContainerStatus {
	return *(&v1.ContainerStatus{
		Name: c.name, ContainerID: c.id, Image: "example.com/" + c.name, ImageID: "sha256:" + c.name,
		State: c.state, LastTerminationState: c.last, Ready: c.ready, Started: c.started, RestartCount: c.restarts,
	}).DeepCopy()
}

// statuses returns those of one kind, nil if the pod has none.
func (p *nodePod) statuses(kind containerKind) []v1.ContainerStatus {
	var list []v1.ContainerStatus
	for _, c := range p.containers {
		if c.kind == kind {
			list = append(list, c.status())
		}
	}
	return list
}

// mirrorUID is the UID of the newest mirror of a static pod.
func (p *nodePod) mirrorUID() types.UID {
	return types.UID(fmt.Sprintf("%s-mirror-%d", p.uid(), p.mirrors))
}

// apiPod is the pod as it is created in the API: itself, or a mirror of it.
func (p *nodePod) apiPod() *v1.Pod {
	pod := p.spec.DeepCopy()
	delete(pod.Annotations, kubetypes.ConfigSourceAnnotationKey)
	if p.static {
		pod.UID = p.mirrorUID()
		pod.Annotations[kubetypes.ConfigSourceAnnotationKey] = kubetypes.FileSource
		pod.Annotations[kubetypes.ConfigMirrorAnnotationKey] = "hash"
	}
	pod.Status = v1.PodStatus{
		Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort,
		Conditions: []v1.PodCondition{stamped(v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})},
	}
	return pod
}
