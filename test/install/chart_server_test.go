package install

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
)

// startServer starts the control plane of test/controlplane/server and returns the kubeconfig of an administrator.
func startServer(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(root, "bin/controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server := exec.Command(program, "--data-dir", dir)
	server.Stderr = os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatalf("%v; make controlplane builds it", err)
	}
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := server.Wait(); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil { // the server prints a line once it is ready
		t.Fatalf("the server ended before it was ready: %q, %v", line, err)
	}
	return filepath.Join(dir, "admin.kubeconfig")
}

// A chart is installed, goes through all modes, goes back and is removed by Helm itself, on a real API server.
func TestChart_OnAServer_IsInstalledUpgradedAndRemoved(t *testing.T) {
	kubeconfig, namespace := startServer(t), "statusd"
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	helm := &action.Configuration{}
	if err := helm.Init(flags, namespace, "secret", t.Logf); err != nil {
		t.Fatal(err)
	}
	chart, err := loader.Load(filepath.Join(root, "deploy/chart"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := helm.KubernetesClientSet()
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace = "statusd", namespace, true
	if _, err := install.RunWithContext(t.Context(), chart, values{"reader": true, "outputs": values{"events": true, "conditions": true}}); err != nil {
		t.Fatalf("install: %v", err)
	}
	want := func(hostNetwork bool, roles ...string) {
		t.Helper()
		observers, err := client.AppsV1().DaemonSets(namespace).Get(t.Context(), "statusd-observe", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := observers.Spec.Template.Spec.HostNetwork; got != hostNetwork {
			t.Errorf("the network of the machine: %t, want %t", got, hostNetwork)
		}
		if got := clusterRoles(t, client); !slices.Equal(got, roles) {
			t.Errorf("got the cluster roles %q, want %q", got, roles)
		}
	}
	installed := []string{"statusd-fleet-reader", "statusd-observe", "statusd-observe-writer"}
	want(false, installed...)
	for _, mode := range []string{"guard", "repair"} {
		upgrade := action.NewUpgrade(helm)
		upgrade.Namespace = namespace
		if _, err := upgrade.RunWithContext(t.Context(), "statusd", chart, values{"mode": mode}); err != nil {
			t.Fatalf("upgrade to %s: %v", mode, err)
		}
		want(mode == "guard", map[string][]string{"guard": {"statusd-guard", "statusd-observe"}, "repair": {"statusd-observe", "statusd-observe-repair"}}[mode]...)
	}
	rollback := action.NewRollback(helm)
	rollback.Version = 1
	if err := rollback.Run("statusd"); err != nil {
		t.Fatalf("rollback: %v", err)
	}
	want(false, installed...)
	if _, err := action.NewUninstall(helm).Run("statusd"); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	if left := clusterRoles(t, client); len(left) > 0 {
		t.Errorf("the cluster roles %q are left", left)
	}
	if left, err := client.AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("the DaemonSets %v are left, %v", left, err)
	}
}

// clusterRoles are the names of the cluster roles of the chart.
func clusterRoles(t *testing.T, client kubernetes.Interface) (names []string) {
	t.Helper()
	roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		if strings.HasPrefix(role.Name, "statusd") {
			names = append(names, role.Name)
		}
	}
	return names
}
