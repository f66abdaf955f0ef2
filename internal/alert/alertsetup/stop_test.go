package alertsetup

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/alert/endpoint"
)

// Otherwise the alert would come again after the next start.
func TestAlerting_StopBeforeTheAnswerOfAReceiver_KeepsTheDelivery(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived) // for the first alert; there is one
		<-answer
	}))
	defer receiver.Close()
	rules, state := filepath.Join(t.TempDir(), "a.yaml"), t.TempDir()
	write(t, rules, "First")
	a, err := New(Config{Files: []string{rules}}, Process{Source: nothing{}, Node: "n1", StateDir: state,
		Outputs: Outputs{Webhooks: []Webhook{{Name: "book", Options: endpoint.Options{URL: receiver.URL}}}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	<-arrived
	cancel()
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
	stored, err := os.ReadFile(filepath.Join(state, alertsFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, delivered, _ := strings.Cut(string(stored), `"done":`); !strings.Contains(delivered, "book") {
		t.Errorf("the file of alerts does not say that the receiver has the alert:\n%s", stored)
	}
}
