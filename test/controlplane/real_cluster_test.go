//go:build real

package controlplane_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// A cluster's controllers make pods of a deployment, take the taint from a node that is ready, put the
// pods on it, give the node certificates, and mark its pods when its lease is no longer renewed.
func TestClusterHasSchedulerAndControllers(t *testing.T) {
	server := controlplanetest.StartCluster(t, 4*time.Second)
	admin := server.Admin()
	namespace := server.Namespace(t)
	node := server.Node(t, "n1")
	silence := beReady(t, server, "n1")

	deployment := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: apps.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       controlplanetest.Pod("", "", "").Spec,
			},
		},
	}
	pods, err := admin.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	if _, err := admin.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := await(t, pods, "a pod on the node", func(p *v1.Pod) bool { return p.Spec.NodeName == "n1" })

	// By a patch, as controllers may write to the pod at the same time.
	ready := []byte(`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`)
	if _, err := node.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, ready, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatalf("the node reports its pod: %v", err)
	}
	serving := requestServing(t, server, "n1")
	if want := "n1"; serving.DNSNames[0] != want {
		t.Errorf("serving certificate for %q, want %s", serving.DNSNames, want)
	}
	silence()
	await(t, pods, "a pod that is not ready", func(p *v1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == v1.PodReady {
				return c.Status == v1.ConditionFalse
			}
		}
		return false
	})
}

// beReady makes the node as one whose agent runs: with an address, room, ready, and a lease, all of which it reports
// again and again until silence is called. On a machine under load the controllers may find the node silent before that;
// then it is ready again with the next report, as that of an agent is.
func beReady(t *testing.T, server *controlplanetest.Server, name string) (silence func()) {
	t.Helper()
	duration := int32(40)
	leases := server.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease)
	lease := &coordination.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordination.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &duration},
	}
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	report := func(ctx context.Context) error {
		renewal := fmt.Sprintf(`{"spec": {"renewTime": %q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		_, err := leases.Patch(ctx, name, types.MergePatchType, []byte(renewal), metav1.PatchOptions{})
		return errors.Join(err, reportReady(ctx, server.Admin(), name))
	}
	if err := report(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
				_ = report(ctx) // the next one may succeed
			}
		}
	}()
	silence = func() {
		cancel()
		<-done
	}
	t.Cleanup(silence)
	return silence
}

// reportReady writes the status of a node that is ready, by a patch, as controllers write to the node at the same time.
func reportReady(ctx context.Context, client kubernetes.Interface, name string) error {
	now := time.Now().UTC().Format(time.RFC3339)
	const room = `{"cpu": "1", "memory": "1Gi", "pods": "10"}`
	status := fmt.Sprintf(`{"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "capacity": %[1]s, "allocatable": %[1]s,
		"conditions": [{"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": %[2]q, "lastTransitionTime": %[2]q}]}}`, room, now)
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	return err
}

// requestServing has the node request a serving certificate, and returns it.
func requestServing(t *testing.T, server *controlplanetest.Server, name string) *x509.Certificate {
	t.Helper()
	keyPEM, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	subject := &pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
	csr, err := cert.MakeCSR(key, subject, []string{name}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	requests := server.Node(t, name).CertificatesV1().CertificateSigningRequests()
	created, err := requests.Create(t.Context(), &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "serving-"},
		Spec: certificates.CertificateSigningRequestSpec{
			Request: csr, SignerName: certificates.KubeletServingSignerName,
			Usages: []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageServerAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := requests.Watch(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", created.Name).String()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	signed := await(t, events, "a signed request", func(r *certificates.CertificateSigningRequest) bool { return len(r.Status.Certificate) > 0 })
	block, _ := pem.Decode(signed.Status.Certificate)
	if block == nil {
		t.Fatalf("the certificate is not PEM: %q", signed.Status.Certificate)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// await returns the first object of the watch that is as wanted.
func await[T runtime.Object](t *testing.T, events watch.Interface, what string, wanted func(T) bool) T {
	t.Helper()
	late := time.After(10 * time.Minute) // for a machine under load
	for {
		select {
		case event, open := <-events.ResultChan():
			if object, ok := event.Object.(T); ok && wanted(object) {
				return object
			}
			if !open {
				t.Fatalf("the watch ended before there was %s", what)
			}
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
