package notify

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record/util"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/internal/backoff"
)

const (
	component = "statusd-guard"
	// waiting is how many events or requests may wait; a guard has a few in an hour.
	waiting = 100
	// tries is how often one is tried: over some three minutes.
	tries = 16
)

// Events writes Events of the Node, as a [guard.Output].
type Events struct {
	client  kubernetes.Interface
	node    string
	log     *slog.Logger
	queue   chan *v1.Event
	dropped atomic.Int64
}

// NewEvents makes the output. It writes nothing before Run.
func NewEvents(client kubernetes.Interface, node string, log *slog.Logger) *Events {
	return &Events{client: client, node: node, log: orDiscard(log), queue: make(chan *v1.Event, waiting)}
}

// Notify implements [guard.Output].
func (e *Events) Notify(n guard.Notice) {
	if n.Kind == guard.NoticeReport {
		return
	}
	select {
	case e.queue <- e.event(n):
	default:
		e.dropped.Add(1)
	}
}

func (e *Events) event(n guard.Notice) *v1.Event {
	kind := v1.EventTypeWarning
	if n.Kind == guard.NoticeHealthy {
		kind = v1.EventTypeNormal
	}
	at := metav1.NewTime(n.At)
	return &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: util.GenerateEventName(e.node, n.At.UnixNano()), Namespace: metav1.NamespaceDefault},
		// kubectl describe node looks for events with the name in place of the UID.
		InvolvedObject: v1.ObjectReference{Kind: "Node", Name: e.node, UID: types.UID(e.node)},
		Type:           kind, Reason: string(n.Kind), Message: bounded(n.Message, maxMessage),
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              v1.EventSource{Component: component, Host: e.node},
		ReportingController: component, ReportingInstance: e.node,
	}
}

// Run sends events until ctx ends.
func (e *Events) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-e.queue:
			if err := e.send(ctx, event); err != nil && ctx.Err() == nil {
				e.log.Warn("event not stored", "reason", event.Reason, "err", err, "dropped", e.dropped.Load())
			}
		}
	}
}

func (e *Events) send(ctx context.Context, event *v1.Event) error {
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		_, err := e.client.CoreV1().Events(event.Namespace).Create(limited, event, metav1.CreateOptions{})
		cancel()
		if err == nil || apierrors.IsAlreadyExists(err) { // the answer to a try before was lost
			return nil
		}
		if try == tries || refused(err) || !backoff.Sleep(ctx, retries.Random(try)) {
			return err
		}
	}
}

// refused reports whether the API server has answered that it will never take this.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}
