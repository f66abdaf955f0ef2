package fleetpage

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/simulate"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/node/fleet"
	"github.com/statusd/statusd/statustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the page of a simulated cluster of two nodes, of which one becomes not ready after a minute.
type world struct {
	*testing.T
	api   *statustest.Server
	fleet *fleet.Fleet
	page  http.Handler
}

func run(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, api: statustest.New()}
	client, err := kubernetes.NewForConfig(w.api.Config())
	if err != nil {
		t.Fatal(err)
	}
	script, err := simulate.Parse([]byte("outages:\n- {nodes: sim-1, at: 1m, kind: notReady}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.New(simulate.Options{Client: client, Nodes: 2, Prefix: "sim-", Script: script, Seed: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	page := New(s.Fleet(), "v1", simulate.RuntimeVersion)
	w.fleet, w.page = s.Fleet(), page.Handler()
	ctx, cancel := context.WithCancel(t.Context())
	done, paged := make(chan error, 1), make(chan struct{})
	go func() { done <- s.Run(ctx) }()
	go func() { page.Run(ctx); close(paged) }()
	t.Cleanup(func() {
		cancel()
		<-paged
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	w.after(time.Second)
	return w
}

func (w *world) after(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

// get asks as a browser of this machine does.
func (w *world) get(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost:9101"
	answer := httptest.NewRecorder()
	w.page.ServeHTTP(answer, r)
	return answer
}

func (w *world) bind(node, name string) *v1.Pod {
	return w.api.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "main", Image: "app"}}},
	})
}

func TestList_TroubleFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t)
		w.bind("sim-0", "web")
		w.bind("sim-0", "db")
		w.after(2 * time.Minute)
		text := w.get("/").Body.String()
		bad, good := strings.Index(text, "sim-1"), strings.Index(text, "sim-0")
		if bad < 0 || good < bad {
			t.Errorf("the list does not begin with the node that is not Ready:\n%s", text)
		}
		for _, want := range []string{"the script says so", `<a href="nodes/sim-0/">`, "<td>True</td><td>2</td><td>2</td><td>0</td>", "2 nodes."} {
			if !strings.Contains(text, want) {
				t.Errorf("the list lacks %q:\n%s", want, text)
			}
		}
		if text := w.get("/?q=sim-0").Body.String(); strings.Contains(text, "sim-1/") || !strings.Contains(text, "sim-0/") {
			t.Errorf("the list of what contains sim-0 is\n%s", text)
		}
		if text := w.get("/?q=<script>").Body.String(); strings.Contains(text, "<script>") {
			t.Errorf("a search is part of the page as HTML:\n%s", text)
		}
	})
}

func TestNode_HasThePageAndTheAPIOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t)
		w.bind("sim-0", "web")
		w.bind("sim-1", "other")
		w.after(time.Second)
		page := w.get("/nodes/sim-0/")
		if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), `src="main.js"`) || strings.Contains(page.Body.String(), `="/`) {
			t.Errorf("the page of a node: %d, want one whose files are beside it:\n%s", page.Code, page.Body.String())
		}
		if script := w.get("/nodes/sim-0/main.js"); script.Code != http.StatusOK || strings.Contains(script.Body.String(), "'/apis") {
			t.Errorf("main.js: %d, want paths of the API that are beside the page", script.Code)
		}
		pods := decode[view.PodList](t, w.get("/nodes/sim-0/apis/v1/pods"))
		if len(pods.Items) != 1 || pods.Items[0].Name != "web" {
			t.Errorf("the pods of the node are %+v, want web alone", pods.Items)
		}
		node := decode[view.NodeDetail](t, w.get("/nodes/sim-1/apis/v1/node"))
		if node.Name != "sim-1" || node.Delivery.LeaseRenewed == nil || node.UID == "" {
			t.Errorf("the node is %+v, want sim-1 with its UID and lease", node)
		}
		for path, want := range map[string]int{"/nodes/other/": 404, "/base.css": 200, "/nowhere": 404, "/nodes/sim-0/apis/v1/pods/default/other": 404} {
			if got := w.get(path).Code; got != want {
				t.Errorf("%s: got %d, want %d", path, got, want)
			}
		}
	})
}

// A page that is open shows changes of its node.
func TestNode_WatchHasChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t)
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/nodes/sim-0/apis/v1/watch", nil)
		r.Host = "localhost"
		watch, ended := httptest.NewRecorder(), make(chan struct{})
		go func() { w.page.ServeHTTP(watch, r); close(ended) }()
		w.after(time.Second)
		w.bind("sim-0", "late")
		w.bind("sim-1", "stranger")
		w.after(5 * time.Second)
		w.api.Remove("default", "late")
		w.after(5 * time.Second)
		cancel()
		<-ended
		if text := watch.Body.String(); !strings.Contains(text, `"late"`) || !strings.Contains(text, "gone") || strings.Contains(text, "stranger") {
			t.Errorf("the watch of a node has\n%s", text)
		}
	})
}

func TestNode_ThatLeavesTheFleet_EndsItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/nodes/sim-1/apis/v1/watch", nil)
		r.Host = "localhost"
		ended := make(chan struct{})
		go func() { w.page.ServeHTTP(httptest.NewRecorder(), r); close(ended) }()
		w.after(time.Second)
		if err := w.fleet.Remove(t.Context(), "sim-1"); err != nil {
			t.Fatal(err)
		}
		w.get("/")
		w.after(time.Second)
		select {
		case <-ended:
		default:
			t.Error("a watch of a node that has left the fleet goes on")
		}
		if got := w.get("/nodes/sim-1/").Code; got != http.StatusNotFound {
			t.Errorf("the page of a node that has left the fleet: got %d, want 404", got)
		}
	})
}

func decode[T any](t *testing.T, answer *httptest.ResponseRecorder) (value T) {
	t.Helper()
	if err := json.Unmarshal(answer.Body.Bytes(), &value); err != nil {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body.String(), err)
	}
	return value
}

// Another site must not read the page through a browser of this machine.
func TestOtherHosts_AreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = "evil.example"
		answer := httptest.NewRecorder()
		w.page.ServeHTTP(answer, r)
		if answer.Code != http.StatusForbidden {
			t.Errorf("got %d, want 403", answer.Code)
		}
	})
}
