//go:build real

package agent

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// awaitReadyMirror watches the API as an administrator until a mirror pod is ready.
func awaitReadyMirror(t *testing.T, server *controlplanetest.Server, namespace, name string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	w, err := server.Admin().CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if mirror, ok := event.Object.(*v1.Pod); ok && mirror.Name == name && isReady(&mirror.Status) {
			return
		}
	}
	t.Fatalf("mirror pod %s did not get ready before the watch ended: %v", name, ctx.Err())
}

// A joined agent registers its node, mirrors its static pod, and leaves nothing behind in
// this process when it stops: TestMain looks for goroutines.
func TestJoinedAgentStopsCleanly(t *testing.T) {
	server := shared.Server(t)
	c := testConfig(t, "joined")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("joined"); err != nil {
		t.Fatal(err)
	}
	a, stop := run(t, c)
	awaitReady(t, a, "sleeper-joined")
	awaitReadyMirror(t, server, metav1.NamespaceDefault, "sleeper-joined")
	if code, body := get(t, a, "/readyz?verbose"); code != http.StatusOK || !strings.Contains(body, "[+]node ok") {
		t.Errorf("readyz answers %d %q, want 200 with each check", code, body)
	}
	stop()
	node, err := server.Admin().CoreV1().Nodes().Get(t.Context(), "joined", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady && condition.Status != v1.ConditionTrue {
			t.Errorf("after a stop the node is %s (%s), want that it stays ready: its containers run on", condition.Status, condition.Reason)
		}
	}
}

// What makes the pod ready is gone when the second process starts, and the probe may fail
// for an hour: only the mirror can tell that the container was ready before.
func TestReadyStaticPodStaysReadyAcrossARestart(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	c := testConfig(t, "rejoined")
	mark := filepath.Join(t.TempDir(), "ready")
	manifest := `{apiVersion: v1, kind: Pod, metadata: {name: probed, namespace: ` + namespace + `}, spec: {containers: [{name: main, image: host, command: [sleep, "1000000"],
		readinessProbe: {exec: {command: [test, -e, ` + mark + `]}, periodSeconds: 1, failureThreshold: 3600}}]}}`
	for path, content := range map[string]string{mark: "", filepath.Join(c.Manifests, "probed.yaml"): manifest} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("rejoined"); err != nil {
		t.Fatal(err)
	}
	_, stop := run(t, c)
	awaitReadyMirror(t, server, namespace, "probed-rejoined")
	stop()
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	again, _ := runWith(t, c, Options{apiPatience: time.Minute})
	awaitReady(t, again, "probed-rejoined")
}
