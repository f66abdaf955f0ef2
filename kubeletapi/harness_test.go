package kubeletapi_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/test/doors"
	"github.com/statusd/statusd/test/nodetest"
)

// fakeRuntime is a runtime whose commands are functions.
type fakeRuntime struct {
	*runtimefake.Runtime

	mu sync.Mutex // guards what follows
	// exec is what commands do; echo and test if nil.
	exec    func(ctx context.Context, command []string, streams runtime.Streams) (int, error)
	attach  func(ctx context.Context, streams runtime.Streams) error
	forward func(ctx context.Context, port int32, stream io.ReadWriteCloser) error
	logs    func(ctx context.Context, options runtime.LogOptions) (io.ReadCloser, error)
	stats   map[types.UID]runtime.PodStats
}

func newFakeRuntime() *fakeRuntime { return &fakeRuntime{Runtime: runtimefake.New()} }

func (f *fakeRuntime) ExecStream(ctx context.Context, id string, command []string, streams runtime.Streams) (int, error) {
	if f.exec != nil {
		return f.exec(ctx, command, streams)
	}
	switch command[0] {
	case "echo":
		_, err := fmt.Fprintln(streams.Stdout, strings.Join(command[1:], " "))
		return 0, err
	case "test":
		return 1, nil
	}
	return 0, fmt.Errorf("%q is no command", command)
}

func (f *fakeRuntime) Attach(ctx context.Context, _ string, streams runtime.Streams) error {
	return f.attach(ctx, streams)
}

func (f *fakeRuntime) PortForward(ctx context.Context, _ types.UID, port int32, stream io.ReadWriteCloser) error {
	return f.forward(ctx, port, stream)
}

func (f *fakeRuntime) Logs(ctx context.Context, id string, options runtime.LogOptions) (io.ReadCloser, error) {
	if f.logs != nil {
		return f.logs(ctx, options)
	}
	return f.Runtime.Logs(ctx, id, options)
}

func (f *fakeRuntime) PodStats(_ context.Context, uid types.UID) (runtime.PodStats, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stats, ok := f.stats[uid]
	if !ok {
		return stats, runtime.ErrNotFound
	}
	return stats, nil
}

// fakePods are pods by name; mirrors maps UIDs of mirrors.
type fakePods struct {
	pods    []*v1.Pod
	mirrors map[types.UID]types.UID
}

func (f *fakePods) All() []*v1.Pod { return f.pods }

func (f *fakePods) ByName(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range f.pods {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

func (f *fakePods) TranslateUID(uid types.UID) types.UID {
	if static, ok := f.mirrors[uid]; ok {
		return static
	}
	return uid
}

// webPod is the pod default/web, whose container main runs.
func webPod(t testing.TB, rt *fakeRuntime) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web-uid"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "host"}}},
	}
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id, err := rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	rt.WriteLog(id, "hello\n")
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
		Name: "main", ContainerID: id, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}}
	return pod
}

// start runs a server with these options until the test ends, and returns its address.
func start(t testing.TB, options kubeletapi.Options) string {
	t.Helper()
	address, _ := startStoppable(t, options)
	return address
}

func startStoppable(t testing.TB, options kubeletapi.Options) (address string, stop func()) {
	t.Helper()
	if options.Client == nil { // else connections to the API server stay until it ends: TestMain looks then
		leavesNothing(t)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options.Listener = listener
	if options.NodeName == "" {
		options.NodeName = "node"
	}
	if options.Certificate == nil {
		if options.Certificate, err = kubeletapi.SelfSigned(t.TempDir(), "node", []string{"127.0.0.1"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	log := &safeBuffer{}
	options.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := kubeletapi.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(10 * time.Minute):
			t.Error("Run does not return")
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", log.String())
		}
	})
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// leavesNothing fails the test if there are goroutines after it that were not there before. Those of net/http and of SPDY take up to a
// second to end.
func leavesNothing(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		var err error
		for range 20 {
			if err = goleak.Find(before); err == nil {
				return
			}
		}
		t.Errorf("goroutines left behind: %v", err)
	})
}

// alone is a server without an API server, and how its one client connects.
type alone struct {
	address string
	client  *rest.Config
	stop    func() // stops the server and returns when it has stopped
}

// startAlone runs a server that takes the certificates of an authority of its own.
func startAlone(t testing.TB, options kubeletapi.Options) alone {
	t.Helper()
	authority, err := doors.NewAuthority(pkix.Name{CommonName: "authority"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if options.ClientCA, err = kubeletapi.NewRoots(file, nil); err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Sign(doors.Certificate(pkix.Name{CommonName: "client"}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	address, stop := startStoppable(t, options)
	return alone{address: address, stop: stop, client: &rest.Config{Host: "https://" + address, TLSClientConfig: rest.TLSClientConfig{
		Insecure: true,
		CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		KeyData:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}}}
}

// http is a client of the server that keeps no connection after the test.
func (a alone) http(t testing.TB) *http.Client {
	t.Helper()
	config, err := rest.TLSConfigFor(a.client)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get reads a path.
func (a alone) get(t testing.TB, path string) (int, string) {
	t.Helper()
	return nodetest.Read(t, a.http(t), "https://"+a.address+path)
}

// safeBuffer is a buffer for several writers.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(content []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(content)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
