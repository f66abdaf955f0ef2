package repair_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit/repair"
)

// client-go takes a Status of a gateway for a list without pods: a repair would remove the containers of all pods.
func TestList_AnswerThatIsNoList_IsAnError(t *testing.T) {
	body := `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}))
	defer gateway.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: gateway.URL})
	if err != nil {
		t.Fatal(err)
	}
	api := repair.ForClient(client, "n")
	if pods, err := api.List(t.Context()); err == nil {
		t.Errorf("a Status is %d pods, want an error", len(pods))
	}
	body = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"}}`
	if pods, err := api.List(t.Context()); err != nil || len(pods) != 0 {
		t.Errorf("a list without pods: got %d pods, %v", len(pods), err)
	}
}
