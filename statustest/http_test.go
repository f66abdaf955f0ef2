package statustest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

// What a fault answers reaches a client over HTTP as what it is.
func TestFaultsOverHTTP(t *testing.T) {
	server := statustest.New()
	pod := server.Put(newPod("web"))
	web := httptest.NewServer(server)
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: web.URL, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	client := status.NewClient(clientset.CoreV1(), "node")
	for name, c := range map[string]struct {
		fault statustest.Fault
		is    func(error) bool
	}{
		"served":  {nil, func(err error) bool { return err == nil }},
		"429":     {statustest.Always(statustest.Throttled(7)), func(err error) bool { s, ok := apierrors.SuggestsClientDelay(err); return ok && s == 7 }},
		"refused": {statustest.Always(statustest.ErrRefused), func(err error) bool { return err != nil && apierrors.ReasonForError(err) == "" }},
		"proxy": {statustest.LoadBalancerWithoutBackend, func(err error) bool {
			_, foreign := apierrors.StatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
			return foreign && apierrors.IsNotFound(err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server.SetFault(c.fault)
			if _, err := client.PatchStatus(t.Context(), "ns", "web", patch(pod, `{"phase":"Running"}`)); !c.is(err) {
				t.Errorf("the client got %v", err)
			}
			alone := []byte(`[{"op":"test","path":"/status/phase","value":"Running"},{"op":"add","path":"/status/reason","value":"Busy"}]`)
			if _, err := client.(status.JSONPatcher).JSONPatchStatus(t.Context(), "ns", "web", alone); !c.is(err) {
				t.Errorf("the client got %v for a JSON patch", err)
			}
		})
	}
}

// A watch from a version that the server has forgotten must begin with a list.
func TestWatchOfAForgottenVersionExpires(t *testing.T) {
	server := statustest.New()
	web := httptest.NewServer(server)
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: web.URL, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	for range 600 { // two events each
		server.Put(newPod("web"))
		server.Remove("ns", "web")
	}
	_, err = clientset.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from the first version: %v, want that it has expired", err)
	}
}
