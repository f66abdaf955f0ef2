//go:build real

package guardsetup

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/test/stock"
)

// deadlocked is a kubelet that runs, answers /healthz and renews no lease, until it is restarted.
type deadlocked struct {
	mu       sync.Mutex // guards what follows
	started  time.Time
	restarts int
}

// Name is that of a service.
func (d *deadlocked) Name() string { return "kubelet" }

// State is that of a service.
func (d *deadlocked) State(context.Context) (guard.Process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return guard.Process{Exists: true, Sure: true, PID: 100 + d.restarts, Started: d.started}, nil
}

// Start is that of a service.
func (d *deadlocked) Start(context.Context) error { return nil }

// Stop is that of a service.
func (d *deadlocked) Stop(context.Context) error { return nil }

// Restart is that of a service.
func (d *deadlocked) Restart(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started, d.restarts = time.Now(), d.restarts+1
	return nil
}

func (d *deadlocked) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.restarts
}

// renew renews the lease of the node, as a kubelet that has been restarted does, until ctx ends. It names no version: if the
// answer to one renewal is lost, the next one does not conflict.
func (d *deadlocked) renew(ctx context.Context, client kubernetes.Interface, lease *coordinationv1.Lease) {
	wake.Every(ctx, time.Second, func() {
		if d.count() == 0 {
			return
		}
		renewal := fmt.Sprintf(`{"spec": {"renewTime": %q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		_, _ = client.CoordinationV1().Leases(lease.Namespace).Patch(ctx, lease.Name, types.MergePatchType, []byte(renewal), metav1.PatchOptions{})
	})
}

// writeCertificate writes a certificate that expires at a time.
func writeCertificate(t *testing.T, path string, expires time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: expires.Add(-time.Hour), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// With a real API server and the credential of the node alone: a kubelet that answers and does nothing is unhealthy. While
// its certificate has expired it is not restarted, and the report says what would help.
func TestRealServer_ADeadlockedKubelet(t *testing.T) {
	t.Parallel()
	server := shared.Server(t)
	const name = "deadlocked"
	node := server.Node(t, name)
	lease, err := node.CoordinationV1().Leases(v1.NamespaceNodeLease).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name), LeaseDurationSeconds: ptr.To[int32](5),
			RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	healthz := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer healthz.Close()
	certificate := filepath.Join(t.TempDir(), "kubelet-client-current.pem")
	writeCertificate(t, certificate, time.Now().Add(-time.Hour))

	c := Default()
	c.Enabled, c.Restart, c.Semaphore = true, true, "" // a node has no rights to the slots of a cluster
	c.HealthzURL, c.CertificateFile = healthz.URL, certificate
	kubelet := &deadlocked{started: time.Now().Add(-time.Hour)}
	g, err := New(c, Options{Node: name, Every: time.Second, StateDir: t.TempDir(), Kubelet: kubelet, Client: node, Outputs: reported(t, node, name)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = g.Run(ctx) })
	running.Go(func() { kubelet.renew(ctx, node, lease) })

	await := func(what string, wanted func(guard.Report) bool) {
		t.Helper()
		err := stock.Await(t.Context(), func() error {
			if r := g.Report(); !wanted(r) {
				return fmt.Errorf("waits for %s; it is %s: %+v, withheld %q", what, r.Health, r.Reasons, r.Withheld)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	await("a verdict that a restart would not mend", func(r guard.Report) bool {
		return r.Health == guard.Unhealthy && r.Reasons[0].Code == guard.LeaseStale && strings.HasPrefix(r.Do, "renew its client certificate")
	})
	if kubelet.count() != 0 {
		t.Errorf("restarted %d times with an expired certificate", kubelet.count())
	}
	err = stock.Await(t.Context(), func() error {
		object, err := node.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range object.Status.Conditions {
			if c.Type == notify.ConditionType && c.Status == v1.ConditionFalse && c.Reason == guard.LeaseStale {
				return nil
			}
		}
		return fmt.Errorf("the node has no such condition: %+v", object.Status.Conditions)
	})
	if err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, certificate, time.Now().Add(time.Hour))
	await("a restart, and a healthy kubelet", func(r guard.Report) bool { return kubelet.count() == 1 && r.Health == guard.Healthy })
}
