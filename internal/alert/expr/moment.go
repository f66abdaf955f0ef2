package expr

import (
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
)

// Relook is the evaluation interval of expressions that use time in a way for which the next change
// of the result cannot be computed.
const Relook = 5 * time.Second

// Moment is one evaluation: the facts, the time, and until when the result holds if no fact changes.
//
// Functions of time report through it the next instant at which their value can change. The result
// of an evaluation cannot change before the earliest of these instants, unless a fact does.
type Moment struct {
	Now time.Time
	// Records are the history of the pod or the node, the oldest first.
	Records []view.Record
	// pod, container, node and kubelet are the subject and what belongs to it; nil: not in this scope.
	pod, container, node, kubelet *object
	// Change is the record that caused the evaluation, nil if none did.
	Change *view.Record
	// Next is the earliest instant at which the result can be another one; zero: never.
	Next time.Time
	// exact counts the enclosing comparisons that compute the instant themselves.
	exact int
	// ticked: a value was read that grows with time.
	ticked bool
}

// ResolveName and Parent implement an activation of CEL.
func (m *Moment) ResolveName(name string) (any, bool) {
	switch name {
	case "pod":
		return m.pod, m.pod != nil
	case "container":
		return m.container, m.container != nil
	case "node":
		return m.node, m.node != nil
	case "kubelet":
		return m.kubelet, m.kubelet != nil
	case "now":
		m.ticks()
		return types.Timestamp{Time: m.Now}, true
	case "change":
		return &object{typ: changeType, at: m, v: m.Change}, m.Change != nil
	case "from":
		return m.transition(func(r *view.Record) string { return r.From })
	case "to":
		return m.transition(func(r *view.Record) string { return r.To })
	case momentName:
		return m, true
	}
	return nil, false
}

func (m *Moment) Parent() interpreter.Activation { return nil }

func (m *Moment) transition(get func(*view.Record) string) (any, bool) {
	if m.Change == nil {
		return nil, false
	}
	return text(get(m.Change)), true
}

// momentName is where the evaluation itself finds the moment. It is no identifier of CEL.
const momentName = "@moment"

// Look notes an instant at which the result can change.
func (m *Moment) Look(at time.Time) {
	if !at.After(m.Now) {
		at = m.Now.Add(1)
	}
	if m.Next.IsZero() || at.Before(m.Next) {
		m.Next = at
	}
}

// ticks notes that a value was read that grows with time. A comparison that knows when it changes
// its result reports that instead.
func (m *Moment) ticks() {
	m.ticked = true
	if m.exact == 0 {
		m.Look(m.Now.Add(Relook))
	}
}

// SetPod makes the moment one of a pod. The moment must not be copied for another subject afterwards.
func (m *Moment) SetPod(detail view.PodDetail) {
	m.pod = &object{typ: podType, at: m, v: podFactsOf(detail)}
}

// IsPod reports whether the moment is one of a pod.
func (m *Moment) IsPod() bool { return m.pod != nil }

// Containers are the names of the containers of the pod.
func (m *Moment) Containers() []string {
	if m.pod == nil {
		return nil
	}
	containers := m.pod.v.(*podFacts).containers
	names := make([]string, len(containers))
	for i := range containers {
		names[i] = containers[i].Name
	}
	return names
}

// InContainer calls a function while the moment is one of the container that has an index in [Moment.Containers].
func (m *Moment) InContainer(i int, evaluate func()) {
	m.container = &object{typ: containerType, at: m, v: &m.pod.v.(*podFacts).containers[i]}
	evaluate()
	m.container = nil
}

// Node has the facts of the node and its kubelet.
type Node struct {
	view.NodeDetail
	// Counts are the pods by state.
	Counts map[explain.State]int
	// ClockStep is how far the clock last jumped, at ClockStepped; zero: it has not.
	ClockStep    time.Duration
	ClockStepped time.Time
	// Numbers are the kubelet's metrics that the guard has read.
	Numbers KubeletFacts
}

// SetNode makes the moment one of the node and its kubelet.
func (m *Moment) SetNode(n Node) {
	m.node = &object{typ: nodeType, at: m, v: nodeFactsOf(n, m.Now)}
	m.kubelet = &object{typ: kubeletType, at: m, v: &kubeletFacts{report: n.Kubelet, KubeletFacts: n.Numbers}}
}
