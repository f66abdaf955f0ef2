package status_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/status"
)

// A server whose admission does not know its pods yet finds none of those that a node wants
// to delete, and lists them all the same.
func TestNotFoundIsTheAnswerToADeleteOnlyIfThePodIsNotListed(t *testing.T) {
	const path, selector = "/api/v1/namespaces/ns/pods", "metadata.name=web,spec.nodeName=n"
	for name, c := range map[string]struct {
		stored   []v1.Pod
		notFound bool
	}{
		"it is there":               {[]v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "a"}}}, false},
		"it is gone":                {nil, true},
		"its name is another pod's": {[]v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "b"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Method == http.MethodDelete && r.URL.Path == path+"/web":
					w.WriteHeader(http.StatusNotFound)
					json.NewEncoder(w).Encode(apierrors.NewNotFound(v1.Resource("pod"), "web").Status())
				case r.Method == http.MethodGet && r.URL.Path == path && r.URL.Query().Get("fieldSelector") == selector && !r.URL.Query().Has("resourceVersion"):
					json.NewEncoder(w).Encode(v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: c.stored})
				default:
					t.Errorf("unexpected request: %s %s", r.Method, r.URL)
				}
			}))
			defer server.Close()
			clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			err = status.NewClient(clientset.CoreV1().RESTClient(), "n").Delete(t.Context(), "ns", "web", "a")
			if err == nil || apierrors.IsNotFound(err) != c.notFound {
				t.Errorf("got %v, want an error that says not found: %v", err, c.notFound)
			}
		})
	}
}
