//go:build real

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	certificates "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }

// user is whom the server takes the bearer of a kubeconfig for.
func user(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

// On a real server: a token becomes a certificate of the node, which is renewed with itself once
// most of its lifetime is over.
func TestATokenBecomesACertificateThatIsRenewed(t *testing.T) {
	server := shared.Server(t)
	server.SignCertificates(t, "booted", 100*time.Hour, 5*time.Hour) // 95 percent are over
	o := testOptions(t, "booted")
	o.Bootstrap = server.BootstrapKubeconfig(t)
	ctx, cancel := patience.Context(t)
	defer cancel()
	if needed, err := Needed(o.Kubeconfig, time.Now()); err != nil || !needed {
		t.Fatalf("got %t (%v), want that a missing kubeconfig is needed", needed, err)
	}
	if err := Obtain(ctx, o); err != nil {
		t.Fatal(err)
	}
	if got := user(t, o.Kubeconfig); got != "system:node:booted" {
		t.Errorf("the certificate is that of %s", got)
	}
	for path, mode := range map[string]os.FileMode{o.Kubeconfig: 0o600, o.CertificateFile(): 0o600, o.Directory: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v (%v), want mode %o", path, info, err, mode)
		}
	}
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{{0, false}, {6 * time.Hour, true}} {
		if needed, err := Needed(o.Kubeconfig, time.Now().Add(c.at)); err != nil || needed != c.want {
			t.Errorf("in %v: got %t (%v), want %t", c.at, needed, err, c.want)
		}
	}

	first, err := os.ReadFile(o.CertificateFile())
	if err != nil {
		t.Fatal(err)
	}
	o.Bootstrap = "" // the certificate itself must do
	renewing, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- Renew(renewing, o) }()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		now, err := os.ReadFile(o.CertificateFile())
		if err == nil && !bytes.Equal(now, first) {
			// One that is made in the second of the first is written into its file, and may be half there.
			if _, err := tls.X509KeyPair(now, now); err == nil {
				break
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("the certificate is not renewed")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := user(t, o.Kubeconfig); got != "system:node:booted" {
		t.Errorf("after the renewal the certificate is that of %s", got)
	}
}

// A request that is not approved is waited for, until the caller has enough.
func TestARequestThatIsNotApproved(t *testing.T) {
	server := shared.Server(t)
	o := testOptions(t, "patient")
	o.Bootstrap = server.BootstrapKubeconfig(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Obtain(ctx, o) }()
	awaitRequest(t, server, "system:node:patient")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the wait was ended", err)
	}
	if _, err := os.Stat(o.Kubeconfig); err == nil {
		t.Error("there is a kubeconfig without a certificate")
	}
}

// awaitRequest returns when the server has a request for a certificate of the user that is neither approved nor denied.
// The watch begins with what is there, such as the requests of other tests.
func awaitRequest(t *testing.T, server *controlplanetest.Server, user string) {
	t.Helper()
	requests, err := server.Admin().CertificatesV1().CertificateSigningRequests().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Stop()
	for event := range requests.ResultChan() {
		request, ok := event.Object.(*certificates.CertificateSigningRequest)
		if !ok || len(request.Status.Conditions) > 0 {
			continue
		}
		if wanted, err := controlplanetest.Wanted(request); err != nil {
			t.Fatal(err)
		} else if wanted.Subject.CommonName == user {
			return
		}
	}
	t.Fatalf("the watch ended before there was a request of %s", user)
}
