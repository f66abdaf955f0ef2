//go:build real

package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/testlog"
)

// copyFile is a file at another place.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// With a bootstrap kubeconfig a node joins without one of its own, and the certificate, of which
// most is over, is renewed while it runs, and is used without a reload.
func TestANodeJoinsWithABootstrapToken(t *testing.T) {
	server := shared.Server(t)
	server.SignCertificates(t, "newcomer", 100*time.Hour, 5*time.Hour)
	c := testConfig(t, "newcomer")
	c.BootstrapKubeconfig = server.BootstrapKubeconfig(t)
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	ctx, cancel := patience.Context(t)
	defer cancel()
	if err := CheckConfig(c); err != nil {
		t.Errorf("before the bootstrap the config is refused: %v", err)
	}
	log := testlog.New(t)
	if err := Bootstrap(ctx, c, Options{Logger: log}); err != nil {
		t.Fatal(err)
	}
	a, err := New(c, withProcesses(c, Options{Logger: log, Reload: func() { t.Error("a reload was asked for") }, credentialsInterval: 10 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	before := a.connection.Config()
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(running) }()
	awaitNode(t, server, "newcomer", v1.ConditionTrue, "")
	awaitCredentials(ctx, t, a, before)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// awaitCredentials returns when the agent uses other credentials than before.
func awaitCredentials(ctx context.Context, t *testing.T, a *Agent, before *rest.Config) {
	t.Helper()
	for a.connection.Config() == before {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the changed credentials are not used")
		}
	}
}

// Credentials that have changed are used without a reload, if they can be used.
func TestChangedCredentialsAreUsedWithoutAReload(t *testing.T) {
	server := shared.Server(t)
	c := testConfig(t, "rekeyed")
	own, err := server.Process.NodeKubeconfig("rekeyed")
	if err != nil {
		t.Fatal(err)
	}
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	copyFile(t, own, c.Kubeconfig)
	a, err := New(c, withProcesses(c, Options{Logger: testlog.New(t), Reload: func() { t.Error("a reload was asked for") }, credentialsInterval: 10 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	before := a.connection.Config()
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(running) }()
	awaitReady(t, a, "sleeper-rekeyed")
	if err := os.WriteFile(c.Kubeconfig, []byte("garbage: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Kubeconfig, append(readFile(t, own), "# another one\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	awaitCredentials(t.Context(), t, a, before)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A kubeconfig of another user ends the agent with an error that says whose it is and whose it
// should be.
func TestAKubeconfigOfAnotherUserIsRefused(t *testing.T) {
	server := shared.Server(t)
	c := testConfig(t, "impostor")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("somebody-else"); err != nil {
		t.Fatal(err)
	}
	a, err := New(c, withProcesses(c, Options{Logger: testlog.New(t)}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	err = a.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), `the credentials are of user "system:node:somebody-else"`) || !strings.Contains(err.Error(), `needs user "system:node:impostor"`) {
		t.Errorf("got %v, want both users named", err)
	}
}

// The kubeconfig of an administrator, with which anything would succeed, makes this machine no node of the cluster.
func TestKubeconfigOfAnAdministrator_RegistersNoNode(t *testing.T) {
	server := shared.Server(t)
	c := testConfig(t, unusedName("laptop"))
	c.Kubeconfig = server.Process.AdminKubeconfig()
	a, err := New(c, withProcesses(c, Options{Logger: testlog.New(t)}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	if err := a.Run(ctx); err == nil || !strings.Contains(err.Error(), "this node needs user") {
		t.Errorf("got %v, want whose kubeconfig it is", err)
	}
	if node, err := server.Admin().CoreV1().Nodes().Get(t.Context(), c.NodeName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got node %v, %v: want none", node.Name, err)
	}
}
