package observer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/testlog"
)

// Renewed credentials are used from the next request on, by all clients, and the observer is not started again: its watches go on.
func TestRenewedCredentials_AreUsedWithoutAReload(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": %q}}`, request.Header.Get("Authorization"))
	}))
	defer server.Close()
	config := Default()
	config.NodeName, config.StateDir, config.HealthzBindAddress = "renewed", t.TempDir(), ""
	config.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	use := func(token string) {
		t.Helper()
		content := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]\n"+
			"users: [{name: u, user: {token: %s}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n", server.URL, token)
		if err := os.WriteFile(config.Kubeconfig, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use("first")
	w := newWorld(t)
	o, err := New(config, Options{
		Logger: testlog.New(t), credentialsInterval: time.Millisecond, Reload: func() { t.Error("a reload was asked for") },
		NewSides: func(_ *rest.Config, changed Changed) (Sides, error) { w.changed = changed; return w.sides(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ctx, cancel := patience.Context(t)
	followed := make(chan error, 1)
	following, stop := context.WithCancel(ctx)
	go func() { followed <- o.followCredentials(following) }()
	shown := func() string {
		t.Helper()
		node, err := o.client.CoreV1().Nodes().Get(ctx, "renewed", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Name
	}
	if got := shown(); got != "Bearer first" {
		t.Errorf("got %q, want the first token", got)
	}
	use("second")
	for shown() != "Bearer second" {
		if ctx.Err() != nil {
			t.Fatal("the renewed credentials are not used")
		}
	}
	stop()
	if err := <-followed; err != nil {
		t.Error(err)
	}
	cancel()
}
