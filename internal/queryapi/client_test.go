package queryapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/queryapi"
)

func TestTheClientUnderstandsTheServer(t *testing.T) {
	node := sampleNode()
	s := newServer(t, node)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	serving, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(serving) }()
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	client, err := queryapi.NewClient(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.Pods(ctx, queryapi.ListOptions{Namespace: "default", Gone: true})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("got %+v, %v", list, err)
	}
	if detail, err := client.Pod(ctx, "default", "loop"); err != nil || detail.Restarts != 4 || len(detail.History) != 1 || detail.Pod == nil {
		t.Errorf("got %+v, %v", detail, err)
	}
	if _, err := client.Pod(ctx, "default", "nowhere"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Pods(ctx, queryapi.ListOptions{State: "Sleepy"}); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
	if detail, err := client.Node(ctx); err != nil || detail.Name != "n1" || len(detail.Pods) != 2 {
		t.Errorf("got %+v, %v", detail, err)
	}
	var last string
	for e, err := range client.Watch(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		last = e.ID
		if e.Kind == "synced" {
			break
		}
	}
	node.set(running("web", restarts(3)))
	for e, err := range client.Watch(ctx, last, "") {
		if err != nil || e.Kind != "pod" {
			t.Errorf("got %+v, %v", e, err)
		}
		break
	}
	// The end of the server is not the end of the program.
	var problem error
	for e, err := range client.Watch(ctx, last, "") {
		if problem = err; e.Kind == "synced" {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	if !errors.Is(problem, queryapi.ErrEnded) {
		t.Errorf("got %v", problem)
	}
}

func TestTheClientRefusesOtherAddresses(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:80", "https://localhost", "ftp://x", "http://"} {
		if _, err := queryapi.NewClient(address); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
}

// Another server at the address is recognized.
func TestTheClientReportsAnswersOfOthers(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "go away", http.StatusTeapot) }))
	defer other.Close()
	client, err := queryapi.NewClient(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Node(t.Context()); err == nil {
		t.Error("no error")
	}
}
