package agent

import (
	"context"
	"log/slog"
	"slices"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// component is who events are from.
const component = "statusd"

// eventsWaiting is how many events may wait to be sent. A burst of starting pods has a
// few a pod; beyond that they are dropped, since events inform and nothing depends on them.
const eventsWaiting = 1000

// event is what is known of an event when it happens.
type event struct {
	about                      v1.ObjectReference
	eventType, reason, message string
}

// events logs the events of pods and sends them to the API server, if there is one.
type events struct {
	node   string
	client kubernetes.Interface // nil: standalone
	log    *slog.Logger
	queue  chan event
}

func newEvents(node string, client kubernetes.Interface, log *slog.Logger) *events {
	return &events{node: node, client: client, log: log, queue: make(chan event, eventsWaiting)}
}

// Event takes an event of a pod or of one of its containers. It never blocks.
func (e *events) Event(pod *v1.Pod, container, eventType, reason, message string) {
	level := slog.LevelDebug // the API server has it
	if e.client == nil {
		level = slog.LevelInfo
	}
	e.log.Log(context.Background(), level, "event", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "container", container, "reason", reason, "message", message)
	e.send(reference(pod, container), eventType, reason, message)
}

// nodeEvent takes an event of the node itself. It never blocks.
func (e *events) nodeEvent(eventType, reason, message string) {
	// kubectl describe node looks for events with the name in place of the UID.
	e.send(v1.ObjectReference{Kind: "Node", Name: e.node, UID: types.UID(e.node)}, eventType, reason, message)
}

func (e *events) send(about v1.ObjectReference, eventType, reason, message string) {
	if e.client == nil {
		return
	}
	select {
	case e.queue <- event{about: about, eventType: eventType, reason: reason, message: message}:
	default:
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

// run sends events until ctx ends. client-go counts repeated ones and holds back floods.
func (e *events) run(ctx context.Context) error {
	if e.client == nil {
		<-ctx.Done()
		return nil
	}
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(e.log.Handler()))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: e.client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: component, Host: e.node})
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-e.queue:
			recorder.Event(&event.about, event.eventType, event.reason, event.message)
		}
	}
}
