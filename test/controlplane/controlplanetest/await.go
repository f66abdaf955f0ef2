package controlplanetest

import (
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/patience"
)

// The server's authorizer and admission learn of roles, nodes and pods by their own watches: a new object may not count yet. A
// test that depends on it waits first.

// AwaitAllowed waits until the server allows a user each of the actions.
func (s *Server) AwaitAllowed(t testing.TB, user string, groups []string, actions ...authorization.ResourceAttributes) {
	t.Helper()
	for _, action := range actions {
		review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &action}}
		until(t, func() bool {
			answer, err := s.admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("may %s %s %s: %v", user, action.Verb, action.Resource, err)
			}
			return answer.Status.Allowed
		}, "%s is not allowed to %s %s", user, action.Verb, action.Resource)
	}
}

// AwaitOwn waits until the server lets a node read a pod of its own, and so knows that the pod is the node's.
func AwaitOwn(t testing.TB, node kubernetes.Interface, pod *v1.Pod) {
	t.Helper()
	until(t, func() bool {
		_, err := node.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err == nil
	}, "the node may not read pod %s/%s", pod.Namespace, pod.Name)
}

// until polls: the server does not announce when its caches have an object.
func until(t testing.TB, is func() bool, format string, args ...any) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf(format, args...)
		}
	}
}
