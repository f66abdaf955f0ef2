//go:build real

package kubeletapi_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/test/doors"
)

// Until the request for its certificate is approved the server refuses connections; a denial is not the end.
func TestRealServer_TheCertificateIsRequestedAndServedOnceItIsSigned(t *testing.T) {
	const node = "requested"
	api := shared.Server(t)
	pki := filepath.Join(api.Process.DataDir(), "pki")
	requested, err := kubeletapi.NewRequested(kubeletapi.RequestOptions{
		Client: api.Node(t, node), NodeName: node, Directory: t.TempDir(), Host: node, Addresses: func() []string { return []string{"127.0.0.1"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	roots, err := kubeletapi.NewRoots(filepath.Join(pki, "ca.crt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt := newFakeRuntime()
	address := start(t, kubeletapi.Options{NodeName: node, Client: api.Node(t, node), ClientCA: roots, Runtime: rt, Pods: &fakePods{}, Certificate: requested})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- requested.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}()

	authority, err := x509PoolOf(filepath.Join(pki, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	connect := func() error {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: authority})
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	requests := api.Admin().CertificatesV1().CertificateSigningRequests()
	// decide waits for the next request that has no decision yet, and makes one.
	decide := func(decision certificates.RequestConditionType) *certificates.CertificateSigningRequest {
		t.Helper()
		watch, err := requests.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.signerName", certificates.KubeletServingSignerName).String()})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		for event := range watch.ResultChan() {
			request, ok := event.Object.(*certificates.CertificateSigningRequest)
			if !ok || request.Spec.Username != "system:node:"+node || len(request.Status.Conditions) > 0 {
				continue
			}
			if connect() == nil {
				t.Error("connected before the request was decided about")
			}
			request.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: decision, Status: v1.ConditionTrue, Reason: "Test"}}
			decided, err := requests.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return decided
		}
		t.Fatal("the watch ended")
		return nil
	}
	decide(certificates.CertificateDenied)
	request := decide(certificates.CertificateApproved)
	signer, err := doors.LoadAuthority(pki)
	if err != nil {
		t.Fatal(err)
	}
	template := doors.Certificate(pkix.Name{}, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour))
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if request.Status.Certificate, err = signer.SignRequest(request.Spec.Request, template); err != nil {
		t.Fatal(err)
	}
	if _, err := requests.UpdateStatus(ctx, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for err := connect(); err != nil; err = connect() {
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func x509PoolOf(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(content)
	return pool, nil
}
