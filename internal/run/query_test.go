package run

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/unixsocket"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/test/patience"
)

// until follows a watch until an event is as wanted, and returns it.
func until(t *testing.T, client *queryapi.Client, since, pod string, wanted func(queryapi.Event) bool) queryapi.Event {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	for event, err := range client.Watch(ctx, since, pod) {
		if err != nil {
			t.Fatal(err)
		}
		if wanted(event) {
			return event
		}
	}
	return queryapi.Event{}
}

func kind(name string) func(queryapi.Event) bool {
	return func(e queryapi.Event) bool { return e.Kind == name }
}

func isReadyRow(e queryapi.Event) bool {
	var row view.PodSummary
	return json.Unmarshal(e.Data, &row) == nil && row.State == "Ready"
}

// A watcher that waits while statusd restarts goes on with a list, over a socket of the same path.
func TestAWatchGoesOnAfterARestart(t *testing.T) {
	c := testConfig(t, "restarted")
	_, stop := started(t, c)
	client := queryapi.NewSocketClient(c.QuerySocketPath())
	defer client.Close()
	last := until(t, client, "", "", isReadyRow)
	info, err := os.Stat(c.QuerySocketPath())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v (%v), want 0600", info.Mode(), err)
	}
	ended := make(chan error, 1)
	go func() {
		for _, err := range client.Watch(context.Background(), last.ID, "") {
			if err != nil {
				ended <- err
			}
		}
	}()
	stop()
	<-ended // or it has not begun before the agent was gone
	if _, err := os.Lstat(c.QuerySocketPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	started(t, c)
	until(t, client, last.ID, "", kind("reset"))
	until(t, client, last.ID, "", isReadyRow)
}

// A file that is no socket, or a socket of another process, is not replaced, and keeps no pod from
// running; so does a path that cannot be written.
func TestSocket_CannotBeMade_PodsRunAllTheSame(t *testing.T) {
	c := testConfig(t, "occupied")
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		t.Fatal(err)
	}
	other, err := unixsocket.Listen(c.QuerySocketPath())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	c.PodsSocket = filepath.Join(c.StateDir, "missing", "pods.sock")
	a, stop := started(t, c)
	awaitReady(t, a, "sleeper-occupied")
	if a.podsSocket != nil {
		t.Error("a socket was made that could not be")
	}
	stop()
	if _, err := os.Lstat(c.QuerySocketPath()); err != nil {
		t.Errorf("the socket of another process is gone: %v", err)
	}
}

// Paths that are not served are answered with a Status, without a redirect, and what is served to
// scrapers alone is not writable either.
func TestPaths_NotServed_AreNotFound(t *testing.T) {
	a, _ := started(t, testConfig(t, "paths"))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/apis/v1/../node", "/apis//v1/pods", "/apis/v1/pods/", "/apis", "/apis/v1/pods/default/%2e%2e"} {
		response, err := client.Get("http://" + a.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		var status metav1.Status
		if err := json.NewDecoder(response.Body).Decode(&status); err != nil || status.Kind != "Status" || int(status.Code) != response.StatusCode {
			t.Errorf("%s: got %d %+v (%v)", path, response.StatusCode, status, err)
		}
		_ = response.Body.Close()
	}
	response, err := client.Post("http://"+a.Address()+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: got %d", response.StatusCode)
	}
}

// The end of a pod reaches a watch of it, and its history stays.
func TestAWatchOfAPodSeesItsEnd(t *testing.T) {
	c := testConfig(t, "ends")
	a, _ := started(t, c)
	awaitReady(t, a, "sleeper-ends")
	client := queryapi.NewSocketClient(c.QuerySocketPath())
	defer client.Close()
	removed := false
	until(t, client, "", "default/sleeper-ends", func(e queryapi.Event) bool {
		if e.Kind == "detail" && !removed {
			removed = true
			if err := os.Remove(filepath.Join(c.Manifests, "sleeper.yaml")); err != nil {
				t.Fatal(err)
			}
		}
		return e.Kind == "gone"
	})
	detail, err := client.Pod(t.Context(), "default", "sleeper-ends")
	if err != nil || detail.Gone == nil || len(detail.History) == 0 {
		t.Errorf("of a pod that has gone: got %+v, %v; want its history", detail, err)
	}
}
