package kubeoutputs

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
)

// The reasons of events.
const (
	ReasonFiring   = "AlertFiring"
	ReasonResolved = "AlertResolved"
)

// Record takes an event. It must not block.
type Record func(about v1.ObjectReference, eventType, reason, message string)

// Events makes an event of each alert that fires or is over. Make it with [NewEvents].
type Events struct {
	node   string
	record Record
}

// NewEvents makes the output of a node to the events of its process.
func NewEvents(node string, record Record) *Events { return &Events{node: node, record: record} }

// Name is events.
func (*Events) Name() string { return "events" }

// Notify records an event, unless there was one before a restart.
func (e *Events) Notify(n engine.Notification) {
	if !n.Again && n.Alert.Silenced == "" {
		switch n.Alert.State {
		case alert.Firing:
			e.record(About(&n.Alert, e.node), v1.EventTypeWarning, ReasonFiring, sentence(&n.Alert))
		case alert.Resolved:
			e.record(About(&n.Alert, e.node), v1.EventTypeNormal, ReasonResolved, sentence(&n.Alert))
		}
	}
	done(n)
}

func done(n engine.Notification) {
	if n.Done != nil {
		n.Done()
	}
}

// About is the object that an alert is about: its pod with UID, the container in the way of the kubelet,
// or the Node in the way of kubectl describe, which looks for the name in place of the UID.
func About(a *alert.Alert, node string) v1.ObjectReference {
	if a.Pod == "" {
		return v1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)}
	}
	about := v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: a.Namespace, Name: a.Pod, UID: a.UID}
	if a.Container != "" {
		about.FieldPath = "spec.containers{" + a.Container + "}"
	}
	return about
}

// sentence is what an alert says on one line.
func sentence(a *alert.Alert) string {
	summary := a.Annotations["summary"]
	if summary == "" {
		summary = a.Annotations["description"]
	}
	if summary == "" {
		return fmt.Sprintf("%s (%s)", a.Rule, a.Severity)
	}
	return fmt.Sprintf("%s (%s): %s", a.Rule, a.Severity, strings.Join(strings.Fields(summary), " "))
}
