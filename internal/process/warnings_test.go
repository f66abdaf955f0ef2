package process

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestLogWarnings_SameWarningWithEachAnswer_IsLoggedOnce(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Add("Warning", `299 - "unknown field \"status.new\""`)
		w.Header().Add("Warning", fmt.Sprintf(`299 - "number %d"`, requests))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Node", "apiVersion": "v1"}`)
	}))
	defer server.Close()
	var log bytes.Buffer
	config := &rest.Config{Host: server.URL, QPS: -1}
	LogWarnings(config, slog.New(slog.NewTextHandler(&log, nil)))
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * maxWarnings {
		if _, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(log.String(), "status.new"); got != 1 {
		t.Errorf("the warning was logged %d times, want 1:\n%s", got, log.String())
	}
	if got := strings.Count(log.String(), "\n"); got != maxWarnings {
		t.Errorf("got %d lines, want %d", got, maxWarnings)
	}
}

func TestLogWarnings_HandlerOfTheProgram_Stays(t *testing.T) {
	config := &rest.Config{WarningHandler: rest.NoWarnings{}}
	LogWarnings(config, slog.Default())
	if config.WarningHandlerWithContext != nil {
		t.Error("the handler of the program was replaced")
	}
}
