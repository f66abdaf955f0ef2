package nodecerts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func node() *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: "10.1.2.3"},
			{Type: v1.NodeHostName, Address: "host-of-n1"},
		}},
	}
}

// request is that of node n1, changed as the caller wants before it is signed.
func request(t *testing.T, change func(*certificates.CertificateSigningRequest, *x509.CertificateRequest)) *certificates.CertificateSigningRequest {
	t.Helper()
	csr := &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1"},
		Spec: certificates.CertificateSigningRequestSpec{
			SignerName: certificates.KubeletServingSignerName,
			Username:   "system:node:n1",
			Groups:     []string{"system:nodes", "system:authenticated"},
			Usages:     []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageServerAuth},
		},
	}
	wanted := &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}},
		DNSNames:    []string{"n1", "host-of-n1"},
		IPAddresses: []net.IP{net.IPv4(10, 1, 2, 3)},
	}
	if change != nil {
		change(csr, wanted)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, wanted, key)
	if err != nil {
		t.Fatal(err)
	}
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return csr
}

func TestOnlyANodesOwnNameAndAddressesAreApproved(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*certificates.CertificateSigningRequest, *x509.CertificateRequest)
		want   string // part of the reason; empty: approved
	}{
		"its own": {nil, ""},
		"with a key of RSA's usages": {func(r *certificates.CertificateSigningRequest, _ *x509.CertificateRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificates.UsageKeyEncipherment)
		}, ""},
		"another user": {func(r *certificates.CertificateSigningRequest, _ *x509.CertificateRequest) {
			r.Spec.Username = "admin"
		}, "is not a node"},
		"a user named like a node": {func(r *certificates.CertificateSigningRequest, _ *x509.CertificateRequest) {
			r.Spec.Groups = []string{"system:authenticated"}
		}, "is not a node"},
		"another node's subject": {func(_ *certificates.CertificateSigningRequest, w *x509.CertificateRequest) {
			w.Subject.CommonName = "system:node:n2"
		}, "common name"},
		"masters": {func(_ *certificates.CertificateSigningRequest, w *x509.CertificateRequest) {
			w.Subject.Organization = []string{"system:nodes", "system:masters"}
		}, "organizations"},
		"a client's usage": {func(r *certificates.CertificateSigningRequest, _ *x509.CertificateRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificates.UsageClientAuth)
		}, "client auth"},
		"no server's usage": {func(r *certificates.CertificateSigningRequest, _ *x509.CertificateRequest) {
			r.Spec.Usages = r.Spec.Usages[:1]
		}, "server auth"},
		"another name": {func(_ *certificates.CertificateSigningRequest, w *x509.CertificateRequest) {
			w.DNSNames = append(w.DNSNames, "kubernetes.default.svc")
		}, "kubernetes.default.svc"},
		"another address": {func(_ *certificates.CertificateSigningRequest, w *x509.CertificateRequest) {
			w.IPAddresses = append(w.IPAddresses, net.IPv4(10, 0, 0, 1))
		}, "10.0.0.1"},
		"a URI": {func(_ *certificates.CertificateSigningRequest, w *x509.CertificateRequest) {
			w.URIs = []*url.URL{{Scheme: "spiffe", Host: "cluster"}}
		}, "URI"},
		"nothing": {func(_ *certificates.CertificateSigningRequest, w *x509.CertificateRequest) {
			w.DNSNames, w.IPAddresses = nil, nil
		}, "no name and no address"},
	} {
		csr := request(t, c.change)
		client := fake.NewClientset(csr, node())
		err := New(client).approve(t.Context(), csr.Name)
		after, getErr := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr.Name, metav1.GetOptions{})
		if getErr != nil {
			t.Fatal(getErr)
		}
		switch approved := len(after.Status.Conditions) == 1; {
		case approved != (c.want == ""):
			t.Errorf("%s: approved is %t, error %v", name, approved, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestARequestThatIsDecidedIsLeftAlone(t *testing.T) {
	csr := request(t, nil)
	csr.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: certificates.CertificateDenied, Status: v1.ConditionTrue}}
	client := fake.NewClientset(csr, node())
	if err := New(client).approve(t.Context(), csr.Name); err != nil {
		t.Errorf("got %v, want nothing left to do", err)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("a denied request: got %s, want no write", action.GetVerb())
		}
	}
}

func TestARequestBeforeTheNodesAddressesIsApprovedLater(t *testing.T) {
	csr := request(t, nil)
	early := node()
	early.Status.Addresses = nil
	client := fake.NewClientset(csr, early)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(client).Run(ctx) }()

	watch, err := client.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range watch.ResultChan() {
		if r, ok := event.Object.(*certificates.CertificateSigningRequest); ok && len(r.Status.Conditions) == 1 {
			break
		}
	}
	watch.Stop()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestBindTwice(t *testing.T) {
	client := fake.NewClientset()
	for range 2 {
		if err := Bind(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	list, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != len(bindings) {
		t.Errorf("got %d bindings, %v, want %d", len(list.Items), err, len(bindings))
	}
}
