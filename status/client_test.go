package status_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
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
				json.NewEncoder(w).Encode(v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: stored})
			}))
			defer server.Close()
			clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			core := clientset.CoreV1().RESTClient()
			found, err := status.NewClient(core, "n").(status.Finder).FindPod(t.Context(), "ns", "web")
			if err != nil || (found != nil) != (len(stored) > 0) {
				t.Errorf("got %v, %v; stored are %d", found, err, len(stored))
			}
		})
	}
}
