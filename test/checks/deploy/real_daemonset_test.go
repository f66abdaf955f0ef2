//go:build real

package deploy

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/image"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/stock"
)

// The stock kubelet runs the image as a pod of the DaemonSet, with the rights and mounts of the manifests and
// nothing else: it is ready, and every side answers.
func TestDaemonSetOnAStockNode(t *testing.T) {
	stock.Need(t)
	archive := statusdImage(t)
	n := stock.Start(t, stock.Options{Controllers: true})
	ctx := stock.Context(t)
	if err := n.Containerd.LoadImage(ctx, archive); err != nil {
		t.Fatal(err)
	}
	port, err := n.Port()
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(n.Dir(), "observe")
	a := newApplier(t, n.API.AdminConfig())
	for _, o := range forNode(t, n, port, state) {
		if err := stock.Await(ctx, func() error { return a.Apply(ctx, o, false) }); err != nil { // the namespace first
			t.Fatal(err)
		}
	}

	var pod v1.Pod
	err = stock.Await(ctx, func() error {
		pods, err := n.Admin().CoreV1().Pods("statusd").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || !stock.Ready(&pods.Items[0]) {
			return fmt.Errorf("%d pods of the DaemonSet, want 1 that is ready", len(pods.Items))
		}
		pod = pods.Items[0]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("pod %s is ready on node %s", pod.Name, pod.Spec.NodeName)
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", port))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %s", answer.Status)
	}
	client := queryapi.NewSocketClient(filepath.Join(state, "statusd.sock"))
	defer client.Close()
	if err := stock.Await(ctx, func() error { return allAnswer(ctx, client) }); err != nil {
		t.Fatal(err)
	}
}

func allAnswer(ctx context.Context, client *queryapi.Client) error {
	report, err := client.Audit(ctx)
	if err != nil {
		return err
	}
	for _, side := range []audit.Side{audit.SideAPI, audit.SideKubelet, audit.SideRuntime, audit.SideMachine} {
		if answer := report.Sides[side]; !answer.Known() {
			return fmt.Errorf("side %s does not answer: %s", side, answer.Err)
		}
	}
	return nil
}

// statusdImage is the archive of make image.
func statusdImage(t *testing.T) string {
	t.Helper()
	i, err := image.Statusd("localhost/statusd:dev", binaries.Path(t, binaries.StaticStatusd), "", "")
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := image.Write(&archive, i); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "statusd.tar")
	if err := os.WriteFile(file, archive.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// forNode are the default manifests with what is other on this node: paths, ports, and no network but the host's, of
// which it uses the loopback interface alone.
func forNode(t *testing.T, n *stock.Node, port int, state string) []*unstructured.Unstructured {
	t.Helper()
	change := strings.NewReplacer(
		"/run/containerd/containerd.sock", n.Containerd.Socket(),
		"/run/containerd", filepath.Dir(n.Containerd.Socket()),
		"/var/lib/kubelet", n.Kubelet.Root(),
		"/etc/kubernetes/manifests", n.Manifests(),
		"path: /var/lib/statusd-observe", "path: "+state,
		"$(HOST_IP):10250", n.Kubelet.Address(),
		"$(POD_IP)", "127.0.0.1",
		"httpGet: {", "httpGet: {host: 127.0.0.1, ",
		"10266", strconv.Itoa(port),
	)
	server, err := url.Parse(n.API.Address())
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, name := range kustomized(t) {
		objects, err := decode([]byte(change.Replace(string(readFile(t, "deploy/observe/"+name)))))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects...)
	}
	for _, o := range all {
		if o.GetKind() != "DaemonSet" {
			continue
		}
		spec := o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		spec["hostNetwork"] = true
		container := spec["containers"].([]any)[0].(map[string]any)
		container["args"] = append(container["args"].([]any), "--healthz-bind-address=127.0.0.1:0")
		container["env"] = append(container["env"].([]any),
			map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": server.Hostname()},
			map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": server.Port()})
	}
	return all
}
