package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The answers that a node gets in bad times, as client-go hands them out. Some of them lie.

// notFromTheServer is the 404 of a load balancer or an ingress without a backend. Its body
// is no Kubernetes Status, so that client-go builds one and says so in a cause.
func notFromTheServer(verb, name string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, verb, podResource, name, "default backend - 404", 0, true)
}

// deniedByNodeAuthorizer is the answer to a node's user about a pod that the authorizer's
// graph does not connect with the node: a pod that is not there, one of another node, and
// for a while after the server has started any pod.
func deniedByNodeAuthorizer(verb, namespace, name string) error {
	return apierrors.NewForbidden(podResource, name, fmt.Errorf(
		"User %q cannot %s resource \"pods\" in API group \"\" in the namespace %q: no relationship found between node 'node' and this object",
		"system:node:node", verb, namespace))
}

// boundElsewhere is what NodeRestriction answers for a pod of another node, before anything
// compares UIDs: a pod of that name was created again, and scheduled to another node.
func boundElsewhere(what, name string) error {
	return apierrors.NewForbidden(podResource, name, fmt.Errorf(`node "node" can only %s with spec.nodeName set to itself`, what))
}

// deniedByWebhook is the answer of an admission webhook, which is free to choose the code.
func deniedByWebhook(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: `admission webhook "guard.example.com" denied the request: not now`,
	}}
}

// throttled is a 429 of the server's priority and fairness, with Retry-After.
func throttled(seconds int) error { return apierrors.NewTooManyRequests("too many requests", seconds) }

// unavailable is a 503 of what stands before the server, with Retry-After.
func unavailable(verb, name string, seconds int) error {
	return apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, verb, podResource, name, "maintenance", seconds, true)
}

var errRefused = errors.New("dial tcp 127.0.0.1:6443: connect: connection refused")

// podName is the name of the pod that a request is about, without its namespace.
func (s sent) podName() string {
	for i := range s.name {
		if s.name[i] == '/' {
			return s.name[i+1:]
		}
	}
	return s.name
}

// A load balancer without a backend answers everything with its own 404.
func loadBalancerWithoutBackend(_ context.Context, s sent) error {
	return notFromTheServer(s.verb, s.podName())
}

// A server that has just started denies to know any pod of the node: NodeRestriction
// answers deletes, and the Node authorizer reads, out of caches that are still empty. A
// patch and a list are served.
func serverThatHasJustStarted(_ context.Context, s sent) error {
	switch s.verb {
	case "GET":
		return deniedByNodeAuthorizer("get", "ns", s.podName())
	case "DELETE":
		return apierrors.NewNotFound(podResource, s.podName())
	}
	return nil
}
