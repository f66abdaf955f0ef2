package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// A server that was just started refuses everything for a moment, and an outage may last: the Node waits until it is known whose
// the kubeconfig is. A server that never says so keeps no node from running.
func TestIdentity_IsKnownBeforeTheNode(t *testing.T) {
	down, forbidden := errors.New("connection refused"), apierrors.NewForbidden(authentication.Resource("selfsubjectreviews"), "", errors.New("no role"))
	for _, c := range []struct {
		story   string
		answers []error // in turn; the last one stays
		user    string
		known   bool // after an hour
		fails   bool
	}{
		{"the node's", []error{nil}, "system:node:n", true, false},
		{"an administrator's", []error{nil}, "kubernetes-admin", false, true},
		{"an administrator's, after a start of the server", []error{down, forbidden, forbidden, nil}, "kubernetes-admin", false, true},
		{"no server", []error{down}, "", false, false},
		{"a server that never says", []error{forbidden}, "", true, false},
		{"an administrator's, said late", []error{forbidden, forbidden, forbidden, forbidden, forbidden, forbidden, nil}, "kubernetes-admin", true, true},
	} {
		t.Run(c.story, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				asked := 0
				client.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
					answer := c.answers[min(asked, len(c.answers)-1)]
					asked++
					return true, &authentication.SelfSubjectReview{Status: authentication.SelfSubjectReviewStatus{
						UserInfo: authentication.UserInfo{Username: c.user, Groups: []string{"system:nodes"}}}}, answer
				})
				a := &Agent{nodeName: "n", log: slog.New(slog.DiscardHandler), cluster: cluster{client: client, identified: make(chan struct{})}}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- a.checkIdentity(ctx) }()
				time.Sleep(time.Hour)
				if a.isIdentified() != c.known {
					t.Errorf("identified %v, want %v", a.isIdentified(), c.known)
				}
				cancel()
				if err := <-done; (err != nil) != c.fails {
					t.Errorf("got %v, want an error: %v", err, c.fails)
				}
			})
		})
	}
}
