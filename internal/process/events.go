package process

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/text"
)

const (
	// Component is the source component of events.
	Component = "statusd"
	// eventsWaiting is how many events may wait to be sent. A burst of starting pods has a few
	// per pod; beyond that they are dropped, since events inform and nothing depends on them.
	eventsWaiting = 4000
	// MaxEventMessage is the limit that events.k8s.io has for a message.
	MaxEventMessage = 1024
)

// Results of sending an event, as the label of the metric.
const (
	eventSent       = "sent"       // the API server has stored it
	eventCounted    = "counted"    // increased the count of a stored event
	eventSuppressed = "suppressed" // too many of one object
	eventDropped    = "dropped"    // too many waited
	EventRefused    = "refused"    // the API server refuses the event
	eventFailed     = "failed"     // the API server could not be reached
)

// event has the facts of an event at the time when it happens.
type event struct {
	at                         time.Time
	about                      v1.ObjectReference
	eventType, reason, message string
}

// Events logs the events of pods and sends them to the API server, if there is one.
type Events struct {
	node    string
	client  kubernetes.Interface // nil: standalone
	log     *slog.Logger
	queue   chan *event
	results *prometheus.CounterVec
	// Warned is called for each event of type Warning of a pod, if it is set.
	Warned func(uid types.UID, container, reason, message string, at time.Time)

	named int64 // what the name of the last event ends with; of Run alone
}

// NewEvents makes the sender of a node's events. Without a client they are only logged.
func NewEvents(node string, client kubernetes.Interface, log *slog.Logger) *Events {
	e := &Events{node: node, client: client, log: log, queue: make(chan *event, eventsWaiting)}
	e.results = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statusd_events_total", Help: "Events of pods and of the node, by what became of them.",
	}, []string{"result"})
	for _, result := range []string{eventSent, eventCounted, eventSuppressed, eventDropped, EventRefused, eventFailed} {
		e.results.WithLabelValues(result) // so that a rate is there before the first one
	}
	return e
}

// Collectors are the metrics of events.
func (e *Events) Collectors() []prometheus.Collector {
	return []prometheus.Collector{e.results, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "statusd_events_waiting", Help: "Events that wait to be sent.",
	}, func() float64 { return float64(len(e.queue)) })}
}

// Event takes an event of a pod or of one of its containers. Event never blocks.
func (e *Events) Event(pod *v1.Pod, container, eventType, reason, message string) {
	level := slog.LevelDebug // the API server has it
	if e.client == nil {
		level = slog.LevelInfo
	}
	message = printable(message)
	e.log.Log(context.Background(), level, "event", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "container", container, "reason", reason, "message", message)
	if e.Warned != nil && eventType == v1.EventTypeWarning {
		e.Warned(pod.UID, container, reason, message, time.Now())
	}
	e.take(reference(pod, container), eventType, reason, message)
}

// NodeEvent takes an event of the node itself. NodeEvent never blocks.
func (e *Events) NodeEvent(eventType, reason, message string) {
	// kubectl describe node looks for events with the name in place of the UID.
	e.take(v1.ObjectReference{Kind: "Node", Name: e.node, UID: types.UID(e.node)}, eventType, reason, printable(message))
}

// Take takes an event of any object. Take never blocks.
func (e *Events) Take(about v1.ObjectReference, eventType, reason, message string) {
	e.take(about, eventType, reason, printable(message))
}

func (e *Events) take(about v1.ObjectReference, eventType, reason, message string) {
	if e.client == nil {
		return
	}
	select {
	case e.queue <- &event{at: time.Now(), about: about, eventType: eventType, reason: reason, message: message}:
	default:
		e.results.WithLabelValues(eventDropped).Inc()
		e.log.Debug("event dropped, too many wait", "object", about.Namespace+"/"+about.Name, "reason", reason)
	}
}

// reference names a pod, or a container in the way of the kubelet: spec.containers{name}.
func reference(pod *v1.Pod, container string) v1.ObjectReference {
	about := v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	named := func(c v1.Container) bool { return c.Name == container }
	switch {
	case slices.ContainsFunc(pod.Spec.Containers, named):
		about.FieldPath = "spec.containers{" + container + "}"
	case slices.ContainsFunc(pod.Spec.InitContainers, named):
		about.FieldPath = "spec.initContainers{" + container + "}"
	}
	return about
}

// printable is a message that the API server takes and a terminal can show, whatever a probe has
// answered: valid UTF-8 of bounded length, without control characters other than tab and newline.
func printable(message string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r == utf8.RuneError:
			return '?'
		}
		return r
	}, text.Cut(message, MaxEventMessage))
}
