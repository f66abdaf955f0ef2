package kubeletside

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podsapi"
	"github.com/statusd/statusd/internal/unixsocket"
)

// pods are those of a fake kubelet.
type pods struct {
	mu      sync.Mutex // guards what follows
	pods    map[types.UID]*v1.Pod
	changed func(types.UID)
	thawed  chan struct{} // closed while the kubelet answers
	watched chan struct{} // has a value once the server watches
}

func newPods() *pods {
	p := &pods{pods: map[types.UID]*v1.Pod{}, changed: func(types.UID) {}, thawed: make(chan struct{}), watched: make(chan struct{}, 1)}
	close(p.thawed)
	return p
}

func (p *pods) put(name string) types.UID {
	uid := types.UID("uid-of-" + name)
	p.mu.Lock()
	p.pods[uid] = pod(name)
	changed := p.changed
	p.mu.Unlock()
	changed(uid)
	return uid
}

func pod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name), Annotations: map[string]string{"a": "1", "b": "2"}},
		Spec:       v1.PodSpec{NodeName: "n1"},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
}

func (p *pods) remove(uid types.UID, _ string) {
	p.mu.Lock()
	delete(p.pods, uid)
	changed := p.changed
	p.mu.Unlock()
	changed(uid)
}

func (p *pods) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thawed = make(chan struct{})
}

func (p *pods) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
	default:
		close(p.thawed)
	}
}

// wait waits while the kubelet is frozen.
func (p *pods) wait() {
	p.mu.Lock()
	thawed := p.thawed
	p.mu.Unlock()
	<-thawed
}

// These make it a source of podsapi.

func (p *pods) Synced() bool { return true }

func (p *pods) Pods() []*v1.Pod {
	p.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.pods))
}

func (p *pods) Pod(uid types.UID) (*v1.Pod, bool) {
	p.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.pods[uid]
	return found, ok
}

func (p *pods) Watch(ctx context.Context, changed func(types.UID)) error {
	p.mu.Lock()
	p.changed = changed
	p.mu.Unlock()
	p.watched <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// socketKubelet is a kubelet with the Pods API: that of package podsapi.
type socketKubelet struct {
	*pods
	t      *testing.T
	socket string
	end    func()
}

func newSocketKubelet(t *testing.T) *socketKubelet {
	k := &socketKubelet{pods: newPods(), t: t, socket: filepath.Join(t.TempDir(), "s")}
	k.start()
	t.Cleanup(func() {
		k.thaw()
		k.kill()
	})
	return k
}

func (k *socketKubelet) options() Options {
	return Options{Node: "n1", Socket: k.socket, Timeout: time.Second}
}

func (k *socketKubelet) own() bool { return true }

func (k *socketKubelet) start() {
	listener, err := unixsocket.Listen(k.socket)
	if err != nil {
		k.t.Fatal(err)
	}
	server, err := podsapi.New(podsapi.Options{Source: k.pods})
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Run(ctx, listener)
	}()
	<-k.watched // what changes before would be in no watch
	k.end = func() {
		cancel()
		<-done
	}
}

func (k *socketKubelet) kill() { k.end() }

// httpsKubelet serves GET /pods as a stock kubelet does: JSON in no order, for clients with a certificate or a token.
type httpsKubelet struct {
	*pods
	t       *testing.T
	address string
	server  *httptest.Server
	dir     string
	// answer replaces what is served, if it is not nil.
	answer http.HandlerFunc
}

const secret = "the token"

func newHTTPSKubelet(t *testing.T) *httpsKubelet {
	k := &httpsKubelet{pods: newPods(), t: t, address: loopback(), dir: t.TempDir()}
	k.start()
	k.write("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.server.Certificate().Raw})))
	k.write("token", secret+"\n")
	t.Cleanup(func() {
		k.thaw()
		k.kill()
	})
	return k
}

// loopback is an address of this test alone, so that its port is still free when the kubelet comes back.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
}

func (k *httpsKubelet) write(name, content string) string {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return path
}

func (k *httpsKubelet) options() Options {
	return Options{
		Node: "n1", URL: "https://" + k.address, Timeout: time.Second,
		CAFile: filepath.Join(k.dir, "ca"), TokenFile: filepath.Join(k.dir, "token"), ServerName: "example.com",
	}
}

func (k *httpsKubelet) own() bool { return false }

func (k *httpsKubelet) start() {
	listener, err := net.Listen("tcp", k.address)
	if err != nil {
		k.t.Fatal(err)
	}
	k.address = listener.Addr().String()
	k.server = httptest.NewUnstartedServer(http.HandlerFunc(k.serve))
	k.server.Listener.Close()
	k.server.Listener = listener
	k.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	k.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	k.server.StartTLS()
}

func (k *httpsKubelet) kill() {
	k.server.CloseClientConnections()
	k.server.Close()
}

func (k *httpsKubelet) serve(w http.ResponseWriter, r *http.Request) {
	k.wait()
	k.mu.Lock()
	answer := k.answer
	list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for _, pod := range k.pods.pods { // in no order, as a kubelet's
		list.Items = append(list.Items, *pod)
	}
	k.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path != "/pods":
		http.NotFound(w, r)
	case r.Header.Get("Authorization") != "Bearer "+secret && len(r.TLS.PeerCertificates) == 0:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}
}

// say makes the kubelet answer something else.
func (k *httpsKubelet) say(answer http.HandlerFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = answer
}
