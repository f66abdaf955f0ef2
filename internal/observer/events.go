package observer

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/process"
)

// The reasons of events.
const (
	reasonDetected = "StatusDriftDetected"
	reasonResolved = "StatusDriftResolved"
)

const (
	// together is how many events of a kind one audit makes. More of them, as when the kubelet ends, are one
	// event of the Node.
	together = 5
	// eventsPerSecond and eventsBurst bound the long-term rate; the sender's own bounds hold per object.
	eventsPerSecond = 0.5
	eventsBurst     = 30
)

// announcements makes events of what became of differences, if it may.
type announcements struct {
	on     bool
	sender *process.Events
	budget flowcontrol.PassiveRateLimiter
}

func newAnnouncements(on bool, sender *process.Events) *announcements {
	return &announcements{on: on, sender: sender, budget: flowcontrol.NewTokenBucketPassiveRateLimiter(eventsPerSecond, eventsBurst)}
}

// steps makes the events of one audit.
func (a *announcements) steps(v *view, list []step) {
	if !a.on {
		return
	}
	for _, reason := range []string{reasonDetected, reasonResolved} {
		for _, kind := range audit.Kinds() {
			a.some(v, reason, kind, slices.DeleteFunc(slices.Clone(list), func(s step) bool { return s.Kind != kind || reasonOf(&s) != reason }))
		}
	}
}

// reasonOf is the reason of the event of a step, empty if it makes none.
func reasonOf(s *step) string {
	switch {
	case s.to == drifted:
		return reasonDetected
	case s.from == drifted && s.to == resolved:
		return reasonResolved
	}
	return ""
}

// some makes the events of one kind of difference.
func (a *announcements) some(v *view, reason string, kind audit.Kind, list []step) {
	if len(list) > together {
		names := make([]string, together)
		for i := range names {
			names[i] = list[i].Pod.Namespace + "/" + list[i].Pod.Name
		}
		a.node(typeOf(reason), reason, fmt.Sprintf("%s: %d pods: %s, and others", kind, len(list), strings.Join(names, ", ")))
		return
	}
	for i := range list {
		s := &list[i]
		message := fmt.Sprintf("%s: %s", s.Kind, sentence(s.Message))
		if reason == reasonDetected && s.Do != "" {
			message += " " + sentence(s.Do)
		}
		a.about(v, s.Pod, s.Container, typeOf(reason), reason, message)
	}
}

func typeOf(reason string) string {
	if reason == reasonDetected {
		return v1.EventTypeWarning
	}
	return v1.EventTypeNormal
}

// sentence begins a text with a capital and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// about makes an event of a pod, if the API has it, or else of the node.
func (a *announcements) about(v *view, pod audit.Ref, container, eventType, reason, message string) {
	object := v.pods[pod.UID].api
	if object == nil {
		if pod != (audit.Ref{}) {
			message = fmt.Sprintf("pod %s/%s (%s): %s", pod.Namespace, pod.Name, pod.UID, message)
		}
		a.node(eventType, reason, message)
		return
	}
	if a.budget.TryAccept() {
		a.sender.Event(object, container, eventType, reason, message)
	}
}

func (a *announcements) node(eventType, reason, message string) {
	if a.budget.TryAccept() {
		a.sender.NodeEvent(eventType, reason, message)
	}
}
