package controlplanetest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BootstrapKubeconfig writes a kubeconfig with a bootstrap token that may request certificates of
// nodes, and returns its path.
func (s *Server) BootstrapKubeconfig(t testing.TB) string {
	t.Helper()
	const id, secret = "abcdef", "0123456789abcdef"
	token := &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: metav1.NamespaceSystem},
		Type:       "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true"},
	}
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbac.Subject{{APIGroup: rbac.GroupName, Kind: rbac.GroupKind, Name: "system:bootstrappers"}},
	}
	if _, err := s.admin.CoreV1().Secrets(token.Namespace).Create(t.Context(), token, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("create bootstrap token: %v", err)
	}
	if _, err := s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("bind bootstrap role: %v", err)
	}
	path := filepath.Join(t.TempDir(), "bootstrap.kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
		users: [{name: u, user: {token: %s.%s}}], clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]}`,
		id, secret, s.Process.Address(), filepath.Join(s.Process.DataDir(), "pki", "ca.crt"))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SignCertificates approves and signs all requests for client certificates of the node until the test
// ends, as two controllers of a cluster do. A certificate begins in the past and lasts as long as
// remaining from now on; whole is its lifetime.
func (s *Server) SignCertificates(t testing.TB, node string, whole, remaining time.Duration) {
	t.Helper()
	authority, key := s.authority(t)
	ctx, cancel := context.WithCancel(t.Context())
	requests, err := s.admin.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watch certificate requests: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range requests.ResultChan() {
			request, ok := event.Object.(*certificates.CertificateSigningRequest)
			if !ok || len(request.Status.Conditions) > 0 || request.Spec.SignerName != certificates.KubeAPIServerClientKubeletSignerName {
				continue
			}
			if wanted, err := Wanted(request); err != nil || wanted.Subject.CommonName != "system:node:"+node {
				continue // of another test
			}
			if err := s.sign(ctx, request, authority, key, whole, remaining); err != nil && ctx.Err() == nil {
				t.Errorf("sign certificate request %s: %v", request.Name, err)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		requests.Stop()
		<-done
	})
}

func (s *Server) authority(t testing.TB) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	blocks := map[string]*pem.Block{}
	for _, name := range []string{"ca.crt", "ca.key"} {
		content, err := os.ReadFile(filepath.Join(s.Process.DataDir(), "pki", name))
		if err != nil {
			t.Fatal(err)
		}
		if blocks[name], _ = pem.Decode(content); blocks[name] == nil {
			t.Fatalf("%s is not PEM", name)
		}
	}
	certificate, err := x509.ParseCertificate(blocks["ca.crt"].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParseECPrivateKey(blocks["ca.key"].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// Wanted is what a request asks for.
func Wanted(request *certificates.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return nil, fmt.Errorf("not PEM")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

func (s *Server) sign(ctx context.Context, request *certificates.CertificateSigningRequest, authority *x509.Certificate, key *ecdsa.PrivateKey, whole, remaining time.Duration) error {
	wanted, err := Wanted(request)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	end := time.Now().Add(remaining)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: wanted.Subject, NotBefore: end.Add(-whole), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, wanted.PublicKey, key)
	if err != nil {
		return err
	}
	client := s.admin.CertificatesV1().CertificateSigningRequests()
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificates.CertificateSigningRequestCondition{
		Type: certificates.CertificateApproved, Status: v1.ConditionTrue, Reason: "Test",
	})
	approved, err := client.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	approved.Status.Certificate = bytes.TrimSpace(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	_, err = client.UpdateStatus(ctx, approved, metav1.UpdateOptions{})
	return err
}
