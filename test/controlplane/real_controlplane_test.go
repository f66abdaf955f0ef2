//go:build real

package controlplane_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

var shared = controlplanetest.Shared{Own: true} // what is tested here is the server

func TestMain(m *testing.M) { shared.Main(m) }

func binaryPath(t *testing.T) string {
	t.Helper()
	path, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return path
}

// refused runs the binary, which must end by itself with an error, and returns what it said.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	output, err := exec.CommandContext(ctx, binaryPath(t), args...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("controlplane %s: got %v, want exit status 1; it said:\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

func wantOneLine(t *testing.T, said string, mentions ...string) {
	t.Helper()
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "controlplane: ") {
		t.Errorf("got %q, want one line that starts with the program's name", said)
	}
	for _, want := range mentions {
		if !strings.Contains(said, want) {
			t.Errorf("message %q does not mention %q", said, want)
		}
	}
}

func TestReadyServerHasItsNamespacesAndVersion(t *testing.T) {
	server := shared.Server(t)
	version, err := server.Admin().Discovery().ServerVersion()
	if err != nil || version.GitVersion != "v1.36.3" {
		t.Errorf("server version: got %v, %v, want v1.36.3", version, err)
	}
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if _, err := server.Admin().CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("namespace %s: %v", name, err)
		}
	}
}

func TestReadyServerPublishesItsAddress(t *testing.T) {
	process := shared.Server(t).Process
	published, err := os.ReadFile(filepath.Join(process.DataDir(), "address"))
	if err != nil || strings.TrimSpace(string(published)) != process.Address() {
		t.Errorf("published address: got %q, %v, want %q", published, err, process.Address())
	}
}

func TestClientsAreNotLimited(t *testing.T) {
	process := shared.Server(t).Process
	node, err := process.NodeConfig("unlimited")
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []*rest.Config{process.AdminConfig(), node} {
		if config.QPS != -1 {
			t.Errorf("got QPS %v, want -1: client-go would hide the speed of what is tested", config.QPS)
		}
	}
}

func TestKubeconfigCommandIssuesForWhomItIsAsked(t *testing.T) {
	process := shared.Server(t).Process
	for _, c := range []struct {
		args []string
		user string
	}{
		{[]string{"--admin"}, "admin"},
		{[]string{"--node", "by-command"}, "system:node:by-command"},
	} {
		args := append([]string{"kubeconfig", "--data-dir", process.DataDir()}, c.args...)
		content, err := exec.Command(binaryPath(t), args...).Output()
		if err != nil {
			t.Fatalf("controlplane %s: %v", strings.Join(args, " "), err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(content)
		if err != nil {
			t.Fatalf("kubeconfig of %v: %v", c.args, err)
		}
		if got := userOf(t, config); got != c.user {
			t.Errorf("kubeconfig of %v: the server sees user %q, want %q", c.args, got, c.user)
		}
	}
}

func userOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return whoAmI(t, client)
}

func TestKubeconfigCommandSaysWhatIsWrong(t *testing.T) {
	dataDir := shared.Server(t).Process.DataDir()
	for name, c := range map[string]struct {
		args     []string
		mentions string
	}{
		"no directory":     {[]string{"--admin"}, "--data-dir"},
		"no bearer":        {[]string{"--data-dir", dataDir}, "--node"},
		"two bearers":      {[]string{"--data-dir", dataDir, "--admin", "--node", "n"}, "--node"},
		"bad node name":    {[]string{"--data-dir", dataDir, "--node", "N 1"}, `"N 1"`},
		"no control plane": {[]string{"--data-dir", t.TempDir(), "--admin"}, "no control plane"},
		"unknown argument": {[]string{"--data-dir", dataDir, "--admin", "extra"}, "extra"},
	} {
		t.Run(name, func(t *testing.T) {
			wantOneLine(t, refused(t, append([]string{"kubeconfig"}, c.args...)...), c.mentions)
		})
	}
}

func TestDataDirectoryInUseIsOneClearLine(t *testing.T) {
	process := shared.Server(t).Process
	wantOneLine(t, refused(t, "--data-dir", process.DataDir()), process.DataDir(), "in use by another control plane")

	if _, err := shared.Server(t).Admin().Discovery().ServerVersion(); err != nil {
		t.Errorf("the server that holds the directory was disturbed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(process.DataDir(), "address")); err != nil {
		t.Errorf("the address of the server that holds the directory was withdrawn: %v", err)
	}
}

func TestPortInUseIsOneClearLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)

	t.Run("asked for", func(t *testing.T) {
		wantOneLine(t, refused(t, "--data-dir", t.TempDir(), "--port", port), "port "+port, "in use", "--port")
	})
	t.Run("remembered", func(t *testing.T) {
		dataDir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dataDir, "port"), []byte(port), 0o600); err != nil {
			t.Fatal(err)
		}
		wantOneLine(t, refused(t, "--data-dir", dataDir), "port "+port, "served there before", "--port")
	})
	t.Run("through Start", func(t *testing.T) {
		number, _ := strconv.Atoi(port)
		_, err := controlplane.Start(t.Context(), controlplane.Options{DataDir: t.TempDir(), Port: number})
		if err == nil || !strings.Contains(err.Error(), "port "+port+" on 127.0.0.1 is in use") {
			t.Errorf("got %v, want the server's own words", err)
		}
	})
}

func TestKilledServerKeepsObjectsAndAddress(t *testing.T) {
	server := controlplanetest.Start(t)
	namespace := server.Namespace(t)
	node := server.Node(t, "survivor")
	created := server.CreatePod(t, controlplanetest.Pod(namespace, "web", "survivor"))
	address := server.Process.Address()

	server.Kill(t)
	if _, err := server.Admin().Discovery().ServerVersion(); err == nil {
		t.Fatal("the server still answers after kill -9")
	}
	if held, err := net.Listen("unix", "@statusd-port-"+address[strings.LastIndexByte(address, ':')+1:]); err == nil {
		held.Close()
		t.Error("the port of a server that is down can be chosen for another one")
	}
	server.Restart(t)

	// The clients are those made before the kill.
	got, err := node.CoreV1().Pods(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || got.UID != created.UID || got.ResourceVersion != created.ResourceVersion {
		t.Errorf("pod after kill -9 and restart: got UID %s, resource version %s, %v, want %s, %s",
			got.UID, got.ResourceVersion, err, created.UID, created.ResourceVersion)
	}
	if server.Process.Address() != address {
		t.Errorf("address moved from %s to %s", address, server.Process.Address())
	}
	stopsCleanlyWithAWatchOpen(t, server)
}

func stopsCleanlyWithAWatchOpen(t *testing.T, server *controlplanetest.Server) {
	t.Helper()
	watch, err := server.Admin().CoreV1().Pods(v1.NamespaceAll).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer watch.Stop()
	ctx, cancel := patience.Context(t)
	defer cancel()
	if err := server.Process.Stop(ctx); err != nil {
		t.Errorf("stop on SIGTERM: %v", err)
	}
	if _, err := os.Stat(filepath.Join(server.Process.DataDir(), "address")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("address file after the stop: got %v, want it withdrawn", err)
	}
	if err := server.Process.Stop(ctx); err != nil {
		t.Errorf("second stop: got %v, want a no-op", err)
	}
}

func TestStartThatIsCanceledLeavesNothingRunning(t *testing.T) {
	dataDir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	binaryPath(t)
	cancel()
	if _, err := controlplane.Start(ctx, controlplane.Options{DataDir: dataDir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	lock, err := os.OpenFile(filepath.Join(dataDir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("the data directory is still locked: %v", err)
	}
}
