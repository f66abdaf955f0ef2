package apiside

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// The resources that are served.
const (
	podsPath   = "/api/v1/pods"
	nodesPath  = "/api/v1/nodes"
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
)

var kinds = map[string]metav1.TypeMeta{
	podsPath:   {Kind: "Pod", APIVersion: "v1"},
	nodesPath:  {Kind: "Node", APIVersion: "v1"},
	leasesPath: {Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
}

// object is what the server stores.
type object interface {
	metav1.Object
	runtime.Object
}

// event is a change of a resource.
type event struct {
	version          int
	path, kind, name string
	object           json.RawMessage
}

// fakeAPI is an API server with faults. It ignores selectors, as the side must not trust them.
type fakeAPI struct {
	t       *testing.T
	address string
	server  *httptest.Server

	mu      sync.Mutex // guards what follows
	version int
	objects map[string]map[string]json.RawMessage
	events  []event
	changed chan struct{}             // closed at each change
	fault   func(r *http.Request) int // a status code, 0 to serve, -1 to hang
	deaf    bool                      // watches stay open and show nothing
	ahead   time.Duration             // of the server's clock
	ended   chan struct{}             // ends the requests that hang
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{t: t, address: loopback(), version: 100, objects: map[string]map[string]json.RawMessage{podsPath: {}, nodesPath: {}, leasesPath: {}}, changed: make(chan struct{})}
	f.up()
	t.Cleanup(f.down)
	return f
}

// loopback is an address of this test alone, so that its port is still free when the server comes back.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
}

func (f *fakeAPI) config() *rest.Config { return &rest.Config{Host: "http://" + f.address} }

func (f *fakeAPI) up() {
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.address = listener.Addr().String()
	f.set(func() { f.ended = make(chan struct{}) })
	f.server = httptest.NewUnstartedServer(f)
	f.server.Listener.Close()
	f.server.Listener = listener
	f.server.Start()
}

func (f *fakeAPI) down() {
	f.set(func() { close(f.ended) })
	f.server.CloseClientConnections()
	f.server.Close()
}

func (f *fakeAPI) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// store stores an object, or removes it.
func (f *fakeAPI) store(path string, o object, kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	o.SetResourceVersion(strconv.Itoa(f.version))
	o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(kinds[path].APIVersion, kinds[path].Kind))
	data, err := json.Marshal(o)
	if err != nil {
		f.t.Fatal(err)
	}
	if kind == "DELETED" {
		delete(f.objects[path], o.GetName())
	} else {
		f.objects[path][o.GetName()] = data
	}
	f.announce(event{f.version, path, kind, o.GetName(), data})
}

// announce shows an event to the watches. The caller holds the lock.
func (f *fakeAPI) announce(e event) {
	f.events = append(f.events, e)
	close(f.changed)
	f.changed = make(chan struct{})
}

// bookmark sends one to the watches of all resources.
func (f *fakeAPI) bookmark() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path := range kinds {
		f.announce(event{f.version, path, "BOOKMARK", "", f.bookmarkObject(path, f.version, false)})
	}
}

func (f *fakeAPI) bookmarkObject(path string, version int, initial bool) json.RawMessage {
	annotations := ""
	if initial {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return json.RawMessage(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}`, kinds[path].Kind, kinds[path].APIVersion, version, annotations))
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	fault, ended := 0, f.ended
	if f.fault != nil {
		fault = f.fault(r)
	}
	w.Header().Set("Date", time.Now().Add(f.ahead).UTC().Format(http.TimeFormat))
	f.mu.Unlock()
	switch {
	case fault < 0:
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	case fault > 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(fault)
		reason := map[int]metav1.StatusReason{401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 503: metav1.StatusReasonServiceUnavailable}[fault]
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(fault), Reason: reason, Message: "as the test wants"})
	case kinds[r.URL.Path].Kind == "" && strings.HasPrefix(r.URL.Path, leasesPath):
		f.get(w, leasesPath, strings.TrimPrefix(r.URL.Path, leasesPath+"/"))
	case kinds[r.URL.Path].Kind == "":
		http.NotFound(w, r)
	case r.URL.Query().Get("watch") != "":
		f.watch(w, r, ended)
	default:
		f.list(w, r)
	}
}

func (f *fakeAPI) get(w http.ResponseWriter, path, name string) {
	f.mu.Lock()
	data, ok := f.objects[path][name]
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(404)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound})
		return
	}
	_, _ = w.Write(data)
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	list := map[string]any{
		"kind": kinds[r.URL.Path].Kind + "List", "apiVersion": kinds[r.URL.Path].APIVersion,
		"metadata": map[string]string{"resourceVersion": strconv.Itoa(f.version)}, "items": f.sorted(r.URL.Path),
	}
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// sorted returns the objects by name. The caller holds the lock.
func (f *fakeAPI) sorted(path string) []json.RawMessage {
	names := []string{}
	for name := range f.objects[path] {
		names = append(names, name)
	}
	slices.Sort(names)
	items := []json.RawMessage{}
	for _, name := range names {
		items = append(items, f.objects[path][name])
	}
	return items
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, ended chan struct{}) {
	query := r.URL.Query()
	since, _ := strconv.Atoi(query.Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	encoder, flush := json.NewEncoder(w), http.NewResponseController(w)
	send := func(kind string, object json.RawMessage) {
		_ = encoder.Encode(map[string]any{"type": kind, "object": object})
	}
	f.mu.Lock()
	next := len(f.events)
	switch initial := query.Get("sendInitialEvents") == "true"; {
	case initial:
		for _, o := range f.sorted(r.URL.Path) {
			send("ADDED", o)
		}
		send("BOOKMARK", f.bookmarkObject(r.URL.Path, f.version, true))
	case since > f.version:
		status, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "the version is of the future"})
		f.mu.Unlock()
		send("ERROR", status)
		return
	default:
		next = slices.IndexFunc(f.events, func(e event) bool { return e.version > since })
		if next < 0 {
			next = len(f.events)
		}
	}
	f.mu.Unlock()
	for flush.Flush() == nil {
		f.mu.Lock()
		for ; next < len(f.events) && !f.deaf; next++ {
			if e := f.events[next]; e.path == r.URL.Path {
				send(e.kind, e.object)
			}
		}
		changed := f.changed
		f.mu.Unlock()
		if flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-ended:
			return
		}
	}
}

// These make it a control of the cases.

func (f *fakeAPI) node() string { return "n1" }

func pod(name, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}, Spec: v1.PodSpec{NodeName: node}}
}

func (f *fakeAPI) put(name, node string) types.UID {
	f.store(podsPath, pod(name, node), "ADDED")
	return types.UID("uid-of-" + name)
}

func (f *fakeAPI) say(name, message string) {
	p := pod(name, f.node())
	p.Status.Message = message
	f.store(podsPath, p, "MODIFIED")
}

func (f *fakeAPI) remove(name string) { f.store(podsPath, pod(name, f.node()), "DELETED") }

func (f *fakeAPI) label(value string) {
	f.store(nodesPath, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, "ADDED")
	f.store(nodesPath, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"test": value}}}, "ADDED")
}

func (f *fakeAPI) renew(holder string) {
	f.store(leasesPath, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1", Namespace: "kube-node-lease"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}, "ADDED")
}

// backup remembers what there is; restore goes back to it.
func (f *fakeAPI) backup() (restore func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := json.Marshal(f.objects)
	if err != nil {
		f.t.Fatal(err)
	}
	version := f.version
	return func() {
		f.down()
		f.set(func() {
			f.objects, f.version, f.events = nil, version, nil
			if err := json.Unmarshal(data, &f.objects); err != nil {
				f.t.Error(err)
			}
		})
		f.up()
	}
}
