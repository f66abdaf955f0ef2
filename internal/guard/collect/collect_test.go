package collect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"google.golang.org/grpc"

	"github.com/statusd/statusd/internal/diskspace"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/nodeclient"
)

func newCollector(t *testing.T, o Options) *Collector {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute // only those tests that are about it wait for it
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// again has everything asked at the next call.
func (c *Collector) again() {
	for _, s := range c.sources {
		s.due = time.Time{}
	}
}

func TestHealthz(t *testing.T) {
	status := http.StatusOK
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, strings.Repeat("x", 10*maxAnswer))
	}))
	c := newCollector(t, Options{Healthz: kubelet.URL})
	if h := c.Collect(t.Context()).Healthz; !h.Known || !h.Value.OK || len(h.Value.Text) != maxAnswer {
		t.Errorf("got %+v, want ok and a bounded text", h)
	}
	status = http.StatusInternalServerError
	if h := c.Collect(t.Context()).Healthz; !h.Value.Answered || h.Value.OK || !strings.HasPrefix(h.Value.Text, "500 x") {
		t.Errorf("got %+v", h)
	}
	kubelet.Close()
	if h := c.Collect(t.Context()).Healthz; !h.Known || h.Value.Answered || !strings.Contains(h.Value.Text, "connection refused") {
		t.Errorf("got %+v", h)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if h := c.Collect(ended).Healthz; h.Known {
		t.Errorf("a request that we have canceled counts: %+v", h)
	}
}

// Another server may have the port, a proxy may redirect, a server may want to know who asks: none of that is a verdict.
func TestAPortOfAnotherServerSaysNothing(t *testing.T) {
	status := 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/login")
		w.WriteHeader(status)
	}))
	defer other.Close()
	client, err := nodeclient.Kubelet(nodeclient.Credentials{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, Options{Healthz: other.URL + "/healthz", Server: other.URL, ServerClient: client})
	for _, status = range []int{301, 302, 307, 400, 401, 403, 404, 405, 410} {
		c.again()
		e := c.Collect(t.Context())
		if h := e.Healthz; h.Known || !strings.Contains(h.Why, fmt.Sprint(status)) || !strings.Contains(h.Why, "healthzPort") {
			t.Errorf("%d: got %+v", status, h)
		}
		if p := e.Parts["syncloop"]; p.Known {
			t.Errorf("%d: a part of another server: %+v", status, p)
		}
	}
	for _, status = range []int{429, 500, 503} {
		c.again()
		if h := c.Collect(t.Context()).Healthz; !h.Known || !h.Value.Answered || h.Value.OK {
			t.Errorf("%d: got %+v", status, h)
		}
	}
}

// Whether the time is over while it connects or while it waits for the answer makes no difference.
func TestAnAnswerThatDoesNotComeInTime(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}} {
		if got := cause(&url.Error{Op: "Get", URL: "http://127.0.0.1:10248/healthz", Err: err}); got != "no answer in time" {
			t.Errorf("%v: got %q", err, got)
		}
	}
}

// A kubelet that is frozen takes connections, by the kernel, and answers nothing.
func TestAKubeletThatDoesNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := newCollector(t, Options{Healthz: "http://" + listener.Addr().String() + "/healthz", Timeout: 50 * time.Millisecond})
	if h := c.Collect(t.Context()).Healthz; !h.Known || h.Value.Answered || h.Value.Text != "no answer in time" {
		t.Errorf("got %+v", h)
	}
}

const page = `# HELP kubelet_pleg_relist_duration_seconds Duration in seconds for relisting pods in PLEG.
# TYPE kubelet_pleg_relist_duration_seconds histogram
kubelet_pleg_relist_duration_seconds_bucket{le="+Inf"} %[1]d
kubelet_pleg_relist_duration_seconds_sum %[2]f
kubelet_pleg_relist_duration_seconds_count %[1]d
# TYPE kubelet_pleg_last_seen_seconds gauge
kubelet_pleg_last_seen_seconds 1.7e+09
# TYPE kubelet_runtime_operations_total counter
kubelet_runtime_operations_total{operation_type="list_containers"} %[3]d
kubelet_runtime_operations_total{operation_type="status"} 10
# TYPE kubelet_runtime_operations_errors_total counter
kubelet_runtime_operations_errors_total{operation_type="status"} %[4]d
# TYPE kubelet_runtime_operations_duration_seconds histogram
kubelet_runtime_operations_duration_seconds_bucket{operation_type="status",le="+Inf"} 10
kubelet_runtime_operations_duration_seconds_sum{operation_type="status"} %[5]f
kubelet_runtime_operations_duration_seconds_count{operation_type="status"} 10
# TYPE something_else untyped
something_else{with="much"} broken!
`

// How long pods take to start, when certificates expire, and how often their renewal has failed since it succeeded.
func TestStartsAndCertificates(t *testing.T) {
	now := time.Unix(1e9, 0)
	var m metrics
	read := func(text string) (guard.Fact[time.Duration], guard.Certificates) {
		t.Helper()
		r, err := readMetrics(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		starts, certificates := m.takeStarts(r, now), m.takeCertificates(r, now)
		m.take(r, now)
		return starts, certificates.Value
	}
	page := func(starts int, took float64, client, server string, failed int) string {
		return fmt.Sprintf("# TYPE kubelet_pod_start_duration_seconds histogram\nkubelet_pod_start_duration_seconds_bucket{le=\"+Inf\"} %[1]d\nkubelet_pod_start_duration_seconds_sum %[2]f\nkubelet_pod_start_duration_seconds_count %[1]d\n"+
			"# TYPE kubelet_certificate_manager_client_ttl_seconds gauge\nkubelet_certificate_manager_client_ttl_seconds %[3]s\n"+
			"# TYPE kubelet_certificate_manager_server_ttl_seconds gauge\nkubelet_certificate_manager_server_ttl_seconds %[4]s\n"+
			"# TYPE kubelet_server_expiration_renew_errors counter\nkubelet_server_expiration_renew_errors %[5]d\n", starts, took, client, server, failed)
	}
	starts, c := read(page(10, 20, "3600", "+Inf", 7))
	if starts.Known || !c.ClientExpires.Equal(now.Add(time.Hour)) || !c.ServerExpires.IsZero() || c.RenewalErrors != 0 {
		t.Errorf("the first look: %+v, %+v", starts, c)
	}
	now = now.Add(10 * time.Second)
	if starts, c = read(page(12, 24, "3590", "-5", 9)); !starts.Known || starts.Value != 2*time.Second || !c.ServerExpires.Equal(now.Add(-5*time.Second)) || c.RenewalErrors != 2 {
		t.Errorf("after two starts and two failures: %+v, %+v", starts, c)
	}
	now = now.Add(startsKept + time.Second)
	if starts, c = read(page(12, 24, "86400", "NaN", 9)); starts.Known || c.RenewalErrors != 0 || !c.ServerExpires.IsZero() {
		t.Errorf("after a renewal: %+v, %+v", starts, c)
	}
	now = now.Add(time.Second)
	if _, c = read(page(0, 0, "86399", "NaN", 0)); c.RenewalErrors != 0 { // it was restarted
		t.Errorf("after a restart of the kubelet: %+v", c)
	}
}

func TestPartsAndMetrics(t *testing.T) {
	metrics, syncloop := fmt.Sprintf(page, 10, 1.0, 100, 0, 1.0), http.StatusOK
	refused := false
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case refused:
			http.Error(w, "Forbidden (user=system:anonymous, verb=get)", http.StatusForbidden)
		case r.URL.Path == "/metrics":
			fmt.Fprint(w, metrics)
		case r.URL.Path == "/healthz/syncloop":
			w.WriteHeader(syncloop)
		default:
			fmt.Fprint(w, "ok")
		}
	}))
	defer kubelet.Close()
	client, err := nodeclient.Kubelet(nodeclient.Credentials{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, Options{Server: kubelet.URL, ServerClient: client})
	begin := time.Now()
	c.now = func() time.Time { return begin } // of a machine that is not slow
	e := c.Collect(t.Context())
	if !e.Parts["log"].Value.OK || !e.Parts["syncloop"].Value.OK || !e.PLEG.Value.LastSeen.Equal(time.Unix(1.7e9, 0)) || e.Operations.Known {
		t.Errorf("got %+v", e)
	}
	metrics, syncloop = fmt.Sprintf(page, 20, 31.0, 120, 5, 41.0), http.StatusInternalServerError
	if again := c.Collect(t.Context()); !again.Parts["syncloop"].Value.OK {
		t.Error("the parts are asked at each look")
	}
	c.again()
	e = c.Collect(t.Context())
	if p := e.Parts["syncloop"]; !p.Known || p.Value.OK {
		t.Errorf("got %+v", p)
	}
	if e.PLEG.Value.Relist != 3*time.Second || e.Operations.Value != (guard.Operations{Count: 20, Errors: 5, Mean: 2 * time.Second}) {
		t.Errorf("got %+v and %+v", e.PLEG.Value, e.Operations.Value)
	}
	metrics = fmt.Sprintf(page, 1, 0.1, 2, 0, 0.1) // it was restarted
	c.again()
	if e = c.Collect(t.Context()); e.Operations.Known || e.PLEG.Value.Relist != 0 {
		t.Errorf("after a restart of the kubelet: %+v, %+v", e.PLEG, e.Operations)
	}
	refused = true
	c.again()
	e = c.Collect(t.Context())
	if e.PLEG.Known || e.Operations.Known || e.Parts["syncloop"].Known || !strings.Contains(e.Parts["syncloop"].Why, "Forbidden") {
		t.Errorf("what is not allowed is not known: %+v", e)
	}
}

func TestTheLeaseAndTheAPIServer(t *testing.T) {
	renewed := time.Now().Add(-time.Minute).Truncate(time.Second)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Namespace: v1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To[int32](40)},
	}
	client := fake.NewClientset(lease)
	var failure error
	client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return failure != nil, nil, failure })
	c := newCollector(t, Options{Client: client, Node: "n1"})
	first := c.Collect(t.Context())
	if l := first.Lease; !l.Known || !l.Value.Exists || !l.Value.Renewed.Equal(renewed) || l.Value.Duration != 40*time.Second || !first.APIServer.Value.OK {
		t.Errorf("got %+v", first)
	}
	c.again()
	if again := c.Collect(t.Context()); !again.Lease.Value.Seen.Equal(first.Lease.Value.Seen) {
		t.Error("a lease that is not renewed is seen again")
	}
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for _, f := range []struct {
		err               error
		api, known, exist bool
	}{
		{apierrors.NewForbidden(leases, "n1", errors.New("no")), true, false, false},
		{apierrors.NewUnauthorized("expired"), true, false, false},
		{apierrors.NewNotFound(leases, "n1"), true, true, false},
		{apierrors.NewInternalError(errors.New("etcd")), false, false, false},
		{errors.New("connection refused"), false, false, false},
	} {
		failure = f.err
		c.again()
		if e := c.Collect(t.Context()); e.APIServer.Value.OK != f.api || e.Lease.Known != f.known || e.Lease.Value.Exists != f.exist {
			t.Errorf("%v: got %+v and %+v", f.err, e.APIServer, e.Lease)
		}
	}
}

// fakeRuntime answers as a CRI runtime does.
type fakeRuntime struct {
	cri.UnimplementedRuntimeServiceServer
	ready bool
}

// Status is that of the CRI.
func (f *fakeRuntime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: f.ready, Reason: "Broken"}, {Type: cri.NetworkReady, Status: false},
	}}}, nil
}

func serveRuntime(t *testing.T, socket string, f *fakeRuntime) *grpc.Server {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(server, f)
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })
	return server
}

func TestTheRuntime(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cri.sock")
	server := serveRuntime(t, socket, &fakeRuntime{ready: true})
	c := newCollector(t, Options{Runtime: "unix://" + socket})
	if r := c.Collect(t.Context()).Runtime; !r.Known || !r.Value.OK {
		t.Errorf("a network that is not ready makes the runtime %+v", r)
	}
	server.Stop()
	c.again()
	c.o.Timeout = 100 * time.Millisecond
	if r := c.Collect(t.Context()).Runtime; !r.Known || r.Value.OK || r.Value.Answered {
		t.Errorf("got %+v", r)
	}
	c.o.Timeout = time.Minute
	serveRuntime(t, socket, &fakeRuntime{})
	c.again()
	if r := c.Collect(t.Context()).Runtime; !r.Value.Answered || r.Value.OK || !strings.HasPrefix(r.Value.Text, "Broken") {
		t.Errorf("got %+v", r)
	}
}

// certificate writes a key and a certificate that expires at a time into one file, the key first, as a
// kubelet's may be, and returns its path.
func certificate(t *testing.T, expires time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: expires.Add(-time.Hour), NotAfter: expires, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubelet-client-current.pem")
	data := append(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheMachine(t *testing.T) {
	expires := time.Now().Add(-time.Hour).Truncate(time.Second)
	c := newCollector(t, Options{
		Root: t.TempDir(), Certificate: certificate(t, expires), ShuttingDown: func() bool { return true },
		Behind: func(now time.Time) guard.Fact[guard.Behind] {
			return guard.Read(now, guard.Behind{APIBehindKubelet: 2})
		},
	})
	e := c.Collect(t.Context())
	if !e.Certificate.Value.Equal(expires) || e.Disk.Value.Total == 0 || !e.ShuttingDown.Value || e.Behind.Value.APIBehindKubelet != 2 {
		t.Errorf("got %+v", e)
	}
	nothing := filepath.Join(t.TempDir(), "nothing")
	e = newCollector(t, Options{Root: nothing, Certificate: nothing}).Collect(t.Context())
	if e.Disk.Known || e.Certificate.Known || !strings.Contains(e.Disk.Why, "no such file") {
		t.Errorf("got %+v", e)
	}
}

// A disk that does not answer is asked once, and holds back nothing that is read beside it.
func TestADiskThatHangs(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "certificate") // to open it hangs until there is a writer
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	works, asked := make(chan struct{}), make(chan struct{}, 10)
	c := newCollector(t, Options{
		Root: t.TempDir(), Certificate: fifo, ShuttingDown: func() bool { return true }, Timeout: time.Millisecond,
	})
	c.space = func(path string) (diskspace.Space, error) {
		asked <- struct{}{}
		<-works
		return diskspace.Of(path)
	}
	for range 3 {
		e := c.Collect(t.Context())
		if !e.ShuttingDown.Value || e.Disk.Known || e.Certificate.Known ||
			e.Disk.Why != c.o.Root+": no answer in time" || e.Certificate.Why != fifo+": no answer in time" {
			t.Errorf("got %+v", e)
		}
		c.again()
	}
	<-asked
	if more := len(asked); more != 0 {
		t.Errorf("the disk was asked %d times more while it did not answer", more)
	}
	close(works)
	if err := errors.Join(os.WriteFile(fifo, nil, 0o600), os.Remove(fifo)); err != nil {
		t.Fatal(err)
	}
	for !c.Collect(t.Context()).Disk.Known {
		c.again()
	}
}

// With a client certificate the kubelet knows who asks; a token is sent only to a server that is verified.
func TestCredentials(t *testing.T) {
	file := certificate(t, time.Now().Add(time.Hour))
	var got string
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = fmt.Sprint(len(r.TLS.PeerCertificates), " ", r.Header.Get("Authorization"))
	}))
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	kubelet.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{pair}}
	kubelet.StartTLS()
	defer kubelet.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		credentials nodeclient.Credentials
		want        string
	}{{nodeclient.Credentials{Insecure: true}, "0 "}, {nodeclient.Credentials{CertFile: file, Insecure: true}, "1 "}, {nodeclient.Credentials{TokenFile: token, CAFile: file}, "0 Bearer secret"}} {
		client, err := nodeclient.Kubelet(c.credentials)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(kubelet.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		client.CloseIdleConnections()
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.credentials, got, c.want)
		}
	}
	if err := (nodeclient.Credentials{TokenFile: token, Insecure: true}).CheckToken(); !errors.Is(err, nodeclient.ErrTokenNeedsCA) {
		t.Errorf("got %v", err)
	}
}

// An API server is asked at a pace that a large cluster can bear, and at each look while it does not answer.
func TestWhatIsBadIsAskedAgainAtOnce(t *testing.T) {
	client := fake.NewClientset()
	asked, failure := 0, error(nil)
	client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return failure != nil, nil, failure
	})
	c := newCollector(t, Options{Client: client, Node: "n1"})
	now := time.Now()
	c.now = func() time.Time { return now }
	for range 5 {
		c.Collect(t.Context())
	}
	if asked != 1 {
		t.Errorf("asked %d times in a moment, want once", asked)
	}
	now = now.Add(PaceAPI)
	failure = errors.New("connection refused")
	for range 5 {
		c.Collect(t.Context())
	}
	if asked != 6 {
		t.Errorf("asked %d times while it does not answer, want 5", asked-1)
	}
}

// A write of the lease is tried as a dry run, and only while the lease is not renewed in time. What the API server refuses is told apart from
// rights that this program does not have.
func TestWrites_AreTriedWhileTheLeaseIsLate(t *testing.T) {
	now := time.Now()
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "n1", errors.New(text))
	}
	for _, c := range []struct {
		name      string
		age       time.Duration
		err       error
		known, ok bool
	}{
		{"renewed in time", 5 * time.Second, nil, false, false},
		{"accepted", time.Minute, nil, true, true},
		{"a webhook that is down", time.Minute, apierrors.NewInternalError(errors.New("failed calling webhook")), true, false},
		{"a webhook that denies", time.Minute, forbidden(`admission webhook "x" denied the request`), true, false},
		{"the kubelet's own right is gone", time.Minute, forbidden(`User "system:node:n1" cannot patch resource "leases"`), true, false},
		{"this program has no right", time.Minute, forbidden(`User "system:serviceaccount:statusd:observe" cannot patch resource "leases"`), false, false},
		{"a webhook without dry runs", time.Minute, apierrors.NewBadRequest("admission webhook does not support dry run"), false, false},
		{"no answer", time.Minute, context.DeadlineExceeded, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			holder, renewed := "n1", metav1.NewMicroTime(now.Add(-c.age))
			client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n1"},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}})
			tried := 0
			client.PrependReactor("patch", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
				tried++
				if dry := action.(clienttesting.PatchActionImpl).PatchOptions.DryRun; len(dry) != 1 {
					t.Errorf("a write that is no dry run: %v", dry)
				}
				return true, &coordinationv1.Lease{}, c.err
			})
			collector := newCollector(t, Options{Client: client, Node: "n1"})
			at := now
			collector.now = func() time.Time { return at }
			collector.Collect(t.Context())
			at = now.Add(c.age) // the renewal was seen so long ago
			e := collector.Collect(t.Context())
			if e.Writes.Known != c.known || e.Writes.Value.OK != c.ok || (tried > 0) != (c.age > late) || e.Lease.Value.Holder != "n1" {
				t.Errorf("tried %d times, got %+v", tried, e.Writes)
			}
		})
	}
}

// The kubelet's own count of writes: by code, and without those that got no answer.
func TestRequestsOfAKubelet(t *testing.T) {
	const text = `# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="api",method="PUT"} %d
rest_client_requests_total{code="500",host="api",method="PUT"} %d
rest_client_requests_total{code="<error>",host="api",method="PUT"} %d
rest_client_requests_total{code="201",host="api",method="POST"} 7
`
	var m metrics
	take := func(ok, failed, silent int) guard.Fact[guard.Requests] {
		r, err := readMetrics(strings.NewReader(fmt.Sprintf(text, ok, failed, silent)))
		if err != nil {
			t.Fatal(err)
		}
		defer m.take(r, time.Now())
		return m.takeRequests(r, time.Now())
	}
	if f := take(10, 1, 0); f.Known {
		t.Errorf("one reading: %+v", f)
	}
	if got, want := take(10, 4, 5).Value, (guard.Requests{Refused: 3, Codes: "500"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := take(12, 4, 9).Value, (guard.Requests{Accepted: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
