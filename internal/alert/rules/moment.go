package rules

import (
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"github.com/statusd/statusd/internal/view"
)

// relook is how soon an expression is evaluated again that uses time in a way of which it is not
// known when its truth changes.
const relook = 5 * time.Second

// moment is one evaluation: what is known, when, and until when the result holds if no fact changes.
//
// Functions of time report through it the next instant at which their value can be another one. The
// result of an evaluation cannot change before the earliest of these instants, unless a fact does.
type moment struct {
	now time.Time
	// records are the history of the pod or the node, the oldest first.
	records []view.Record
	// pod, container, node and kubelet are the subject and what belongs to it; nil: not in this scope.
	pod, container, node, kubelet *object
	// change is the record that caused the evaluation, nil if none did.
	change *view.Record
	// next is the earliest instant; zero: never.
	next time.Time
	// exact counts the comparisons around what is evaluated that know the instant themselves.
	exact int
	// ticked: a value was read that grows with time.
	ticked bool
}

// ResolveName and Parent are those of an activation of CEL.
func (m *moment) ResolveName(name string) (any, bool) {
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
		return types.Timestamp{Time: m.now}, true
	case "change":
		return &object{typ: changeType, at: m, v: m.change}, m.change != nil
	case "from":
		return m.transition(func(r *view.Record) string { return r.From })
	case "to":
		return m.transition(func(r *view.Record) string { return r.To })
	case momentName:
		return m, true
	}
	return nil, false
}

func (m *moment) Parent() interpreter.Activation { return nil }

func (m *moment) transition(get func(*view.Record) string) (any, bool) {
	if m.change == nil {
		return nil, false
	}
	return text(get(m.change)), true
}

// momentName is where the evaluation itself finds the moment. It is no identifier of CEL.
const momentName = "@moment"

// look notes an instant at which the result can change.
func (m *moment) look(at time.Time) {
	if !at.After(m.now) {
		at = m.now.Add(1)
	}
	if m.next.IsZero() || at.Before(m.next) {
		m.next = at
	}
}

// ticks notes that a value was read that grows with time. A comparison that knows when it changes
// its result reports that instead.
func (m *moment) ticks() {
	m.ticked = true
	if m.exact == 0 {
		m.look(m.now.Add(relook))
	}
}
