//go:build real

package web_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/internal/web"
	"github.com/statusd/statusd/test/freeport"
)

// fake serves the page and the query API of a node that a test changes, on one address across
// restarts. Unlike the real API it serves names that no pod can have.
type fake struct {
	t       *testing.T
	address string
	server  *http.Server

	mu      sync.Mutex // guards what follows
	epoch   int        // counts the starts: a revision of an earlier one is not known
	node    view.NodeDetail
	pods    map[string]view.PodDetail
	gone    []view.PodDetail
	log     []sent
	changed chan struct{}       // closed and replaced with each change
	refuse  int                 // answer the API with this code
	watches []string            // the queries of the watches so far
	logs    map[string][]string // of containers, by pod and container
	clock   time.Duration       // how far the clock of the node is ahead

	// These, if they are there, hold answers about the node back, as they were when they were asked for: asked is sent to
	// when one was, and release received from before it goes out, or gaveUp sent to if the page does not wait any longer.
	// Without capacity.
	asked, release, gaveUp chan struct{}

	left chan struct{} // capacity 100: one for each watch that its client has left
}

// sent is one event of the watch; its revision is its place in the log.
type sent struct {
	kind, key, data string
}

func startFake(t *testing.T, pods ...view.PodDetail) *fake {
	t.Helper()
	// The port stays the test's while nothing listens there.
	f := &fake{t: t, address: freeport.Address(t), pods: map[string]view.PodDetail{}, node: aNode(), changed: make(chan struct{}), left: make(chan struct{}, 100)}
	for _, pod := range pods {
		f.pods[key(pod)] = pod
	}
	f.start()
	t.Cleanup(f.stop)
	return f
}

func key(pod view.PodDetail) string { return pod.Namespace + "/" + pod.Name }

// start serves, as a process that knows nothing of the revisions of an earlier one.
func (f *fake) start() {
	f.t.Helper()
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	f.epoch++
	f.log = nil
	f.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler())
	mux.HandleFunc("GET /apis/v1/watch", f.api(f.serveWatch))
	mux.HandleFunc("GET /apis/v1/pods", f.api(f.servePods))
	mux.HandleFunc("GET /apis/v1/pods/{namespace}/{name}", f.api(f.serveDetail))
	mux.HandleFunc("GET /apis/v1/pods/{namespace}/{name}/log", f.api(f.serveLog))
	mux.HandleFunc("GET /apis/v1/node", f.api(f.serveNode))
	f.server = &http.Server{Handler: mux}
	go f.server.Serve(listener) // ends with Close
}

// stop ends all connections at once, as kill -9 does.
func (f *fake) stop() { f.server.Close() }

func (f *fake) page(hash string) string { return "http://" + f.address + "/" + hash }

// change does something to the node and sends it.
func (f *fake) change(events ...sent) {
	f.log = append(f.log, events...)
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) put(pods ...view.PodDetail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var events []sent
	for _, pod := range pods {
		f.pods[key(pod)] = pod
		events = append(events, sent{"pod", key(pod), encode(pod.PodSummary)})
	}
	f.change(events...)
}

func (f *fake) remove(pod view.PodDetail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, key(pod))
	pod.Gone, pod.Pod, pod.State, pod.Status = ago(0), nil, explain.StateUnknown, "Gone"
	pod.Why = fmt.Sprintf("Pod %s is gone; the last thing known of it: it was deleted.", key(pod))
	f.gone = append(f.gone, pod)
	f.change(sent{"gone", key(pod), encode(view.GonePod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID})})
}

func (f *fake) setNode(node view.NodeDetail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.node = node
	f.change(sent{"node", "", encode(node)})
}

// refuseWith answers the API with an error from now on; 0 ends that.
func (f *fake) refuseWith(code int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = code
}

// setClock puts the clock of the node ahead.
func (f *fake) setClock(ahead time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = ahead
}

func (f *fake) watched() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.watches)
}

func (f *fake) nodeNow() view.NodeDetail {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.node
}

func (f *fake) serveNode(w http.ResponseWriter, r *http.Request) {
	node := f.nodeNow()
	f.mu.Lock()
	asked, release, gaveUp := f.asked, f.release, f.gaveUp
	f.mu.Unlock()
	if asked != nil {
		select {
		case asked <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
			select {
			case gaveUp <- struct{}{}:
			case <-f.t.Context().Done():
			}
			return
		}
	}
	answer(w, node)
}

// holdNode holds answers about the node back from now on.
func (f *fake) holdNode() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.release, f.gaveUp = make(chan struct{}), make(chan struct{}), make(chan struct{})
}

// releaseNode lets the answer go that was asked for last, and reports whether the page still waited for it.
func (f *fake) releaseNode() bool {
	select {
	case f.release <- struct{}{}:
		return true
	case <-f.gaveUp:
		return false
	}
}

func (f *fake) api(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		code, ahead := f.refuse, f.clock
		f.mu.Unlock()
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		if code != 0 {
			fail(w, code, "the fake refuses")
			return
		}
		serve(w, r)
	}
}

func (f *fake) servePods(w http.ResponseWriter, r *http.Request) {
	list := view.PodList{Items: []view.PodSummary{}}
	state := explain.State(r.URL.Query().Get("state"))
	f.mu.Lock()
	for _, pod := range f.pods {
		if state == "" || pod.State == state {
			list.Items = append(list.Items, pod.PodSummary)
		}
	}
	if r.URL.Query().Get("gone") == "true" {
		for _, pod := range f.gone {
			list.Items = append(list.Items, pod.PodSummary)
		}
	}
	f.mu.Unlock()
	answer(w, list)
}

func (f *fake) serveDetail(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	pod, ok := f.find(r.PathValue("namespace") + "/" + r.PathValue("name"))
	f.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "there is no such pod")
		return
	}
	answer(w, pod)
}

func (f *fake) serveLog(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("namespace") + "/" + r.PathValue("name") + "/" + r.URL.Query().Get("container")
	f.mu.Lock()
	lines, ok := f.logs[name]
	f.mu.Unlock()
	if !ok || r.URL.Query().Get("previous") == "true" {
		fail(w, http.StatusNotFound, "there is no such log")
		return
	}
	answer(w, view.ContainerLog{Container: r.URL.Query().Get("container"), Lines: lines})
}

// setLog sets what a container has written.
func (f *fake) setLog(name string, lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.logs == nil {
		f.logs = map[string][]string{}
	}
	f.logs[name] = lines
}

// find returns a pod, or the last one of its name that is gone. The caller holds mu.
func (f *fake) find(name string) (view.PodDetail, bool) {
	if pod, ok := f.pods[name]; ok {
		return pod, true
	}
	for i := len(f.gone) - 1; i >= 0; i-- {
		if key(f.gone[i]) == name {
			return f.gone[i], true
		}
	}
	return view.PodDetail{}, false
}

func (f *fake) serveWatch(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.watches = append(f.watches, r.URL.RawQuery)
	f.mu.Unlock()
	defer func() { f.left <- struct{}{} }()
	if pod := r.URL.Query().Get("pod"); pod != "" {
		f.follow(w, r, pod)
		return
	}
	var epoch, at int
	out := events{w}
	if _, err := fmt.Sscanf(r.URL.Query().Get("since"), "%d-%d", &epoch, &at); err != nil || epoch != f.epochNow() {
		at = f.list(out)
	}
	synced := false
	for {
		news, changed := f.after(at)
		for _, e := range news {
			at++
			out.send(e.kind, f.revision(at), e.data)
		}
		if !synced {
			synced = true
			out.send("synced", f.revision(at), "{}")
		}
		if !out.wait(r, changed) {
			return
		}
	}
}

// list sends everything and returns the revision that it is of.
func (f *fake) list(out events) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.send("reset", "", "{}")
	out.send("node", "", encode(f.node))
	for _, pod := range f.pods {
		out.send("pod", "", encode(pod.PodSummary))
	}
	return len(f.log)
}

func (f *fake) follow(w http.ResponseWriter, r *http.Request, pod string) {
	f.mu.Lock()
	_, ok := f.find(pod)
	f.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "there is no such pod")
		return
	}
	out, before := events{w}, ""
	for {
		f.mu.Lock()
		detail, ok := f.find(pod)
		changed := f.changed
		f.mu.Unlock()
		if data := encode(detail); ok && data != before {
			before = data
			out.send("detail", "", data)
		}
		if !out.wait(r, changed) {
			return
		}
	}
}

func (f *fake) after(at int) ([]sent, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log[at:], f.changed
}

func (f *fake) epochNow() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

func (f *fake) revision(at int) string { return fmt.Sprintf("%d-%d", f.epochNow(), at) }

// heartbeat is how often a watch is heard of at least. The page takes one that is silent for longer than two of the real
// ones for lost.
const heartbeat = 10 * time.Second

// events writes server-sent events.
type events struct{ w http.ResponseWriter }

func (out events) send(kind, id, data string) {
	if id != "" {
		fmt.Fprintf(out.w, "id: %s\n", id)
	} else {
		out.w.Header().Set("Content-Type", "text/event-stream")
	}
	fmt.Fprintf(out.w, "event: %s\ndata: %s\n\n", kind, data)
}

func (out events) wait(r *http.Request, changed <-chan struct{}) bool {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		_ = http.NewResponseController(out.w).Flush() // an error is that of a client that has left
		select {
		case <-r.Context().Done():
			return false
		case <-changed:
			return true
		case <-beat.C:
			fmt.Fprint(out.w, ": heartbeat\n\n")
		}
	}
}

func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message, Reason: metav1.StatusReason(strings.ReplaceAll(http.StatusText(code), " ", ""))})
}
