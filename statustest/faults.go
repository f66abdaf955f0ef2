package statustest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	// ErrHang as the result of a [Fault] blocks the request until its context ends.
	ErrHang = errors.New("hang until the request is given up")

	// ErrAnswerLost as the result of a [Fault] serves the request, so that it takes effect, and
	// then returns this error: the connection broke before the response arrived.
	ErrAnswerLost = errors.New("read tcp 127.0.0.1:6443: connection reset by peer")

	// ErrRefused is what a client gets while no server listens.
	ErrRefused = errors.New("dial tcp 127.0.0.1:6443: connect: connection refused")
)

// Late returns an error which as the result of a [Fault] blocks a request until its context ends. The server carries the request
// out nevertheless, the given time later: it was slow, or a proxy has held the request. A server that is restored from a backup
// meanwhile has forgotten the request.
func Late(after time.Duration) error { return &lateError{after: after} }

type lateError struct {
	after time.Duration
	err   error // of the context
}

func (e *lateError) Error() string {
	return fmt.Sprintf("%v; the server carries it out %s later", e.err, e.after)
}
func (e *lateError) Unwrap() error { return e.err }

// carryOut serves a request whose client has given it up, if its fault says so.
func (s *Server) carryOut(err error, serve func()) {
	late, ok := errors.AsType[*lateError](err)
	if !ok {
		return
	}
	s.mu.Lock()
	restores := s.restores
	s.mu.Unlock()
	time.AfterFunc(late.after, func() {
		s.mu.Lock()
		forgotten := restores != s.restores
		s.mu.Unlock()
		if !forgotten {
			serve()
		}
	})
}

// NotFromServer returns the 404 of a load balancer or an ingress without a backend. Its body is not
// a Kubernetes Status, so client-go creates a Status with a cause that says so.
func NotFromServer(r Request) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, r.Verb, podResource, r.PodName(), "default backend - 404", 0, true)
}

// DeniedByNodeAuthorizer returns the 403 for a pod that the authorizer's graph does not connect with
// the node: a pod that does not exist, a pod of another node, and any pod for a while after the
// start of the server.
func DeniedByNodeAuthorizer(node, verb, namespace, name string) error {
	message := fmt.Sprintf("User %q cannot %s resource \"pods\" in API group \"\" in the namespace %q: no relationship found between node '%s' and this object",
		"system:node:"+node, verb, namespace, node)
	return apierrors.NewForbidden(podResource, name, errors.New(message))
}

// BoundElsewhere returns the 403 of NodeRestriction for a pod of another node. The server compares
// UIDs later, so a pod that was re-created and scheduled to another node gets this response too.
func BoundElsewhere(node, what, name string) error {
	return apierrors.NewForbidden(podResource, name, fmt.Errorf("node %q can only %s with spec.nodeName set to itself", node, what))
}

// DeniedByWebhook returns the answer of a validating admission webhook, which may choose any code.
func DeniedByWebhook(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: `admission webhook "guard.example.com" denied the request: not now`,
	}}
}

// Conflict returns the 409 for an object that another writer has changed.
func Conflict(r Request) error {
	return apierrors.NewConflict(podResource, r.PodName(), errors.New("the object has been modified"))
}

// NotFound returns the server's own 404.
func NotFound(r Request) error { return apierrors.NewNotFound(podResource, r.PodName()) }

// Forbidden returns the 403 of an authorizer.
func Forbidden(r Request, why string) error {
	return apierrors.NewForbidden(podResource, r.PodName(), errors.New(why))
}

// Invalid returns the 422 for a status that fails the server's validation in these fields.
func Invalid(r Request, problems ...*field.Error) error { return invalid(r.PodName(), problems...) }

// Throttled returns the 429 of priority and fairness, with Retry-After.
func Throttled(seconds int) error { return apierrors.NewTooManyRequests("too many requests", seconds) }

// Unavailable returns the 503 of a proxy before the server, with Retry-After.
func Unavailable(r Request, seconds int) error {
	return apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, r.Verb, podResource, r.PodName(), "maintenance", seconds, true)
}

// LoadBalancerWithoutBackend is a [Fault]: a proxy before the server answers every request with its
// own 404.
func LoadBalancerWithoutBackend(_ context.Context, r Request) error { return NotFromServer(r) }

// ServerJustStarted is a [Fault]: NodeRestriction decides on deletes, and the Node authorizer on
// reads, from caches that are still empty, so that existing pods seem not to exist. Patches and lists
// work.
func ServerJustStarted(_ context.Context, r Request) error {
	switch r.Verb {
	case "GET":
		return DeniedByNodeAuthorizer("node", "get", "ns", r.PodName())
	case "DELETE":
		return NotFound(r)
	}
	return nil
}

// Always returns a [Fault] that answers every request with the error.
func Always(err error) Fault {
	return func(context.Context, Request) error { return err }
}

// On returns a [Fault] that answers the requests of the verb with the error and serves the others.
func On(verb string, err error) Fault {
	return func(_ context.Context, r Request) error {
		if r.Verb == verb {
			return err
		}
		return nil
	}
}
