package status_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/status"
)

// What proves that a pod is gone is a list of what is stored, by node and name.
func TestFindPodListsWhatIsStored(t *testing.T) {
	const path, selector = "/api/v1/namespaces/ns/pods", "metadata.name=web,spec.nodeName=n"
	for name, stored := range map[string][]v1.Pod{
		"it is there": {{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "a"}}},
		"it is gone":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method != http.MethodGet || r.URL.Path != path || r.URL.Query().Get("fieldSelector") != selector || r.URL.Query().Has("resourceVersion") {
					t.Errorf("unexpected request: %s %s", r.Method, r.URL)
				}
				json.NewEncoder(w).Encode(v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: stored})
			}))
			defer server.Close()
			clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			core := clientset.CoreV1()
			found, err := status.NewClient(core, "n").(status.Finder).FindPod(t.Context(), "ns", "web")
			if err != nil || (found != nil) != (len(stored) > 0) {
				t.Errorf("got %v, %v; stored are %d", found, err, len(stored))
			}
		})
	}
}

// Only an answer of the API server proves that a pod was deleted: a gateway may answer 200 with anything.
func TestDelete_AnsweredByAGatewayIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"the pod":                         {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"a"}}`, true},
		"a Status that names the pod":     {`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"web","kind":"pods","uid":"a"}}`, true},
		"another pod":                     {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"b"}}`, false},
		"a Status that names another pod": {`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"b"}}`, false},
		"a Status that names no pod":      {`{"kind":"Status","apiVersion":"v1","status":"Success"}`, false},
		"a page":                          {`<html>welcome</html>`, false},
		"the pod, cut":                    {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"`, false},
		"nothing":                         {``, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(c.body))
			}))
			defer server.Close()
			clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			if err := status.NewClient(clientset.CoreV1(), "n").Delete(t.Context(), "ns", "web", "a"); (err == nil) != c.ok {
				t.Errorf("got error %v, want success: %t", err, c.ok)
			}
		})
	}
}

// limiter notices that a request waits for it.
type limiter struct{ t *testing.T }

func (l limiter) TryAccept() bool { l.t.Error("a request asked the rate limiter"); return true }
func (l limiter) Accept()         { l.t.Error("a request waited for the rate limiter") }
func (l limiter) Wait(context.Context) error {
	l.t.Error("a request waited for the rate limiter")
	return nil
}
func (l limiter) Stop()        {}
func (l limiter) QPS() float32 { return 5 }

// No request of the client can be throttled by the clientset, whatever that was made with, and
// each write carries the name that the options say.
func TestClientIsNotThrottledAndWritesUnderItsName(t *testing.T) {
	var managers []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			managers = append(managers, r.URL.Query().Get("fieldManager"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind":"PodList","apiVersion":"v1"}`))
	}))
	defer server.Close()
	clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: server.URL, RateLimiter: limiter{t}}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "vk"} {
		manager, err := status.New(status.Options{Client: status.NewClient(clientset.CoreV1(), "n"), FieldManager: name})
		if err != nil {
			t.Fatal(err)
		}
		client := status.ClientOf(manager)
		client.List(t.Context())
		client.Get(t.Context(), "ns", "web")
		client.PatchStatus(t.Context(), "ns", "web", []byte("{}"))
		client.Delete(t.Context(), "ns", "web", "uid")
		client.(status.Finder).FindPod(t.Context(), "ns", "web")
		client.(status.VersionReader).ResourceVersion(t.Context())
	}
	if want := []string{"statusd", "vk"}; !slices.Equal(managers, want) {
		t.Errorf("the field managers of the writes are %q, want %q", managers, want)
	}
}
