package alertmanager

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/test/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an Alertmanager that answers what a test wants.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	answer  func(request int, batch []posted) int // nil: 200
	batches [][]posted
	changed chan struct{}
}

func newFake(t *testing.T) *fake {
	f := &fake{changed: make(chan struct{}, 1000)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var batch []posted
	if r.URL.Path != path || r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&batch) != nil {
		http.Error(w, "not the API", http.StatusNotFound)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	code := http.StatusOK
	if f.answer != nil {
		code = f.answer(len(f.batches), batch)
	}
	f.batches = append(f.batches, batch)
	w.WriteHeader(code)
	f.changed <- struct{}{}
}

// got returns the n-th batch, once it has come.
func (f *fake) got(t *testing.T, n int) []posted {
	t.Helper()
	for {
		f.mu.Lock()
		batches := f.batches
		f.mu.Unlock()
		if len(batches) > n {
			return batches[n]
		}
		select {
		case <-f.changed:
		case <-t.Context().Done():
			t.Fatalf("batch %d did not come", n)
		}
	}
}

func run(t *testing.T, o Options) *Output {
	t.Helper()
	output, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, output.Run)
	return output
}

func to(url string) Options {
	return Options{Endpoint: endpoint.Options{URL: url}, Node: "n1", ExternalURL: "https://n1:1/"}
}

func firing(rule, pod string) engine.Notification {
	at := time.Now()
	return engine.Notification{Alert: alert.Alert{
		Fingerprint: rule + pod, Rule: rule, Severity: "warning", Scope: "pod", State: alert.Firing, Namespace: "default", Pod: pod,
		Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"summary": "it is so"}, Since: at, Firing: &at,
	}, At: at, Node: "n1"}
}

func resolved(n engine.Notification) engine.Notification {
	at := time.Now()
	n.Alert.State, n.Alert.Resolved = alert.Resolved, &at
	return n
}

func TestAnAlertInTheWordsOfAlertmanager(t *testing.T) {
	f := newFake(t)
	output := run(t, to(f.URL))
	n := firing("PodStuck", "web 1")
	done := make(chan struct{}, 2) // of the alert and of its end
	n.Done = func() { done <- struct{}{} }
	output.Notify(n)
	<-done
	got := f.got(t, 0)[0]
	want := map[string]string{"alertname": "PodStuck", "severity": "warning", "node": "n1", "namespace": "default", "pod": "web 1", "team": "a"}
	for name, value := range want {
		if got.Labels[name] != value {
			t.Errorf("label %s is %q, want %q", name, got.Labels[name], value)
		}
	}
	if len(got.Labels) != len(want) || got.Annotations["summary"] != "it is so" || got.GeneratorURL != "https://n1:1/#/pods/default/web%201" {
		t.Errorf("got %+v", got)
	}
	if life := got.EndsAt.Sub(got.StartsAt); life < 3*time.Minute || life > 5*time.Minute {
		t.Errorf("expires %v after its start, want about 4 minutes", life)
	}
	output.Notify(resolved(n))
	<-done
	if end := f.got(t, 1)[0]; end.EndsAt.After(time.Now()) {
		t.Errorf("ends at %v, want in the past", end.EndsAt)
	}
}

func TestNamesThatPrometheusDoesNotAllow(t *testing.T) {
	a := firing("r", "p").Alert
	a.Labels = map[string]string{"app.kubernetes.io/name": "x", "1st": "y", "": "z", "gone": "", "bytes": "\xff"}
	got := translate(&a, "n1", "", time.Now().Add(time.Minute))
	for name, value := range map[string]string{"app_kubernetes_io_name": "x", "_1st": "y", "_": "z", "bytes": "?"} {
		if got.Labels[name] != value {
			t.Errorf("label %s is %q, want %q", name, got.Labels[name], value)
		}
	}
	if _, there := got.Labels["gone"]; there || got.GeneratorURL != "" {
		t.Errorf("got %+v", got)
	}
}

func TestAClockThatWasSetBackMakesNoAlertThatEndsBeforeItStarts(t *testing.T) {
	later := time.Now().Add(time.Hour)
	for _, n := range []engine.Notification{firing("r", "p"), resolved(firing("r", "p"))} {
		n.Alert.Firing = &later
		if got := translate(&n.Alert, "n1", "", time.Now().Add(time.Minute)); !got.EndsAt.After(got.StartsAt) {
			t.Errorf("%s: from %v to %v", n.Alert.State, got.StartsAt, got.EndsAt)
		}
	}
}

func TestEachInstanceGetsEverythingAndOneThatFailsDelaysNoOther(t *testing.T) {
	good, bad := newFake(t), newFake(t)
	bad.answer = func(request int, _ []posted) int {
		if request < 2 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}
	a, b := run(t, to(good.URL)), run(t, to(bad.URL))
	if a.Name() == b.Name() {
		t.Fatalf("both are called %s", a.Name())
	}
	for _, output := range []*Output{a, b} {
		output.Notify(firing("r", "p"))
	}
	good.got(t, 0)
	if got := bad.got(t, 2); len(got) != 1 || got[0].Labels["pod"] != "p" { // after two failures
		t.Errorf("got %+v", got)
	}
}

func TestAnAlertThatIsRefusedKeepsNoOtherBack(t *testing.T) {
	f := newFake(t)
	release := make(chan struct{})
	f.answer = func(request int, batch []posted) int {
		if request == 0 {
			<-release // until all three wait
		}
		for _, a := range batch {
			if a.Labels["pod"] == "poor" {
				return http.StatusBadRequest
			}
		}
		return http.StatusOK
	}
	output := run(t, to(f.URL))
	output.Notify(firing("r", "first"))
	delivered := make(chan struct{}, 3)
	for _, pod := range []string{"a", "poor", "b"} {
		n := firing("r", pod)
		n.Done = func() { delivered <- struct{}{} }
		output.Notify(n)
	}
	close(release)
	for range 3 {
		<-delivered
	}
}
