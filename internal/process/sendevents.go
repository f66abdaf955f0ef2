package process

import (
	"context"
	"errors"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"

	"github.com/statusd/statusd/internal/backoff"
)

const (
	// eventTries is how often an event is tried while the server does not answer, which takes about two minutes.
	// The events behind it wait meanwhile.
	eventTries   = 16
	eventTimeout = 10 * time.Second
)

// eventRetries spaces the tries of an event.
var eventRetries = backoff.Schedule{First: 500 * time.Millisecond, Limit: 10 * time.Second}

// Run sends events until ctx ends. The correlator of client-go counts repeated events instead of
// sending them again, merges many events that differ only in the message, and suppresses the excess
// of one object.
func (e *Events) Run(ctx context.Context) error {
	if e.client == nil {
		<-ctx.Done()
		return nil
	}
	correlator := record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{SpamKeyFunc: spamKey})
	refused := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case next := <-e.queue:
			result, err := e.send(ctx, correlator, e.object(next))
			if ctx.Err() != nil {
				return nil
			}
			e.results.WithLabelValues(result).Inc()
			// A server that takes no events would fill the log with each of them.
			switch {
			case err == nil:
				refused = refused && result == eventSuppressed
			case !refused && !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
				refused = true
				e.log.Warn("event not stored, further ones are logged as debug", "object", next.about.Namespace+"/"+next.about.Name, "reason", next.reason, "err", err)
			default:
				e.log.Debug("event not stored", "object", next.about.Namespace+"/"+next.about.Name, "reason", next.reason, "err", err)
			}
		}
	}
}

// spamKey groups the events that share a rate limit: the events of an object, and for the Node the events with the
// same reason. Otherwise a flood of one reason, such as lines of the kernel's log, would suppress the verdict on the
// kubelet.
func spamKey(e *v1.Event) string {
	about := e.InvolvedObject
	key := []string{about.APIVersion, about.Kind, about.Namespace, about.Name, string(about.UID)}
	if about.Kind == "Node" {
		key = append(key, e.Reason)
	}
	return strings.Join(key, "/")
}

// object returns the event as an API object. Names are unique, so AlreadyExists means that the event is stored.
func (e *Events) object(what *event) *v1.Event {
	e.named = max(e.named+1, what.at.UnixNano())
	at, namespace := metav1.NewTime(what.at), what.about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: util.GenerateEventName(what.about.Name, e.named), Namespace: namespace},
		InvolvedObject: what.about,
		Type:           what.eventType, Reason: what.reason, Message: what.message,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              v1.EventSource{Component: Component, Host: e.node},
		ReportingController: Component, ReportingInstance: e.node,
	}
}

// send sends one event to the API server and returns the result.
func (e *Events) send(ctx context.Context, correlator *record.EventCorrelator, object *v1.Event) (result string, err error) {
	correlated, err := correlator.EventCorrelate(object)
	if err != nil {
		return eventFailed, err
	}
	if correlated.Skip {
		return eventSuppressed, nil
	}
	for try := 1; ; try++ {
		result, stored, err := e.write(ctx, correlated)
		switch {
		case err == nil:
			correlator.UpdateState(stored)
			return result, nil
		case !mayRecover(err):
			return EventRefused, err
		case try == eventTries, !backoff.Sleep(ctx, eventRetries.Random(try)):
			return eventFailed, err
		}
	}
}

// write makes one try: the count of an event that is stored grows, or another one is stored.
func (e *Events) write(ctx context.Context, correlated *record.EventCorrelateResult) (result string, stored *v1.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	object := correlated.Event
	client := e.client.CoreV1().Events(object.Namespace)
	if object.Count > 1 {
		stored, err = client.Patch(ctx, object.Name, types.StrategicMergePatchType, correlated.Patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) { // else its time was over
			return eventCounted, stored, err
		}
	}
	object.ResourceVersion = ""
	stored, err = client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the answer to an earlier try was lost
		return eventSent, object, nil
	}
	return eventSent, stored, err
}

// mayRecover reports whether the same event may be taken later: the server did not answer, or not
// about the event.
func mayRecover(err error) bool {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
