//go:build real

package kubeletside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/stock"
)

// stockKubelet is the stock kubelet, asked over its socket or over HTTPS.
type stockKubelet struct {
	t      *testing.T
	node   *stock.Node
	ask    Options
	socket bool
}

func (k *stockKubelet) options() Options { return k.ask }
func (k *stockKubelet) own() bool        { return k.socket }

func (k *stockKubelet) put(name string) types.UID {
	k.t.Helper()
	pod, err := k.node.Create(k.t.Context(), k.node.Pod(name, stock.Forever))
	if err != nil {
		k.t.Fatal(err)
	}
	return pod.UID
}

func (k *stockKubelet) remove(uid types.UID, name string) {
	k.t.Helper()
	err := k.node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Delete(k.t.Context(), name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))})
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *stockKubelet) freeze() {
	k.t.Helper()
	if err := k.node.Kubelet.Process().Pause(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

func (k *stockKubelet) thaw() { k.node.Kubelet.Process().Resume() }
func (k *stockKubelet) kill() { k.node.Kubelet.Process().Kill() }

func (k *stockKubelet) start() {
	k.t.Helper()
	if err := k.node.Kubelet.Start(); err != nil {
		k.t.Fatal(err)
	}
}

func TestRealKubelet(t *testing.T) {
	node := stock.Start(t, stock.Options{Name: "stock", FeatureGates: map[string]bool{"PodsAPI": true}})
	dir := t.TempDir()
	client := node.API.AdminConfig().TLSClientConfig
	file := func(name, path string, data []byte) string {
		t.Helper()
		if path != "" {
			return path
		}
		path = filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	https := Options{
		Node: node.Name, URL: "https://" + node.Kubelet.Address(), CAFile: node.Kubelet.ServingCertificate(), ServerName: node.Name,
		CertFile: file("cert", client.CertFile, client.CertData), KeyFile: file("key", client.KeyFile, client.KeyData),
	}
	socket := Options{Node: node.Name, Socket: node.Kubelet.PodsSocket()}

	t.Run("GET /pods", func(t *testing.T) {
		kubeletCases(t, func(t *testing.T) control { return &stockKubelet{t, node, https, false} })
	})
	t.Run("Pods API", func(t *testing.T) {
		kubeletCases(t, func(t *testing.T) control { return &stockKubelet{t, node, socket, true} })
	})
	t.Run("refusals", func(t *testing.T) {
		for want, change := range map[string]func(*Options){
			"401 Unauthorized":                        func(o *Options) { o.CertFile, o.KeyFile = "", "" },
			"not signed by":                           func(o *Options) { o.CAFile = "" },
			"configure the server name":               func(o *Options) { o.ServerName = "another" },
			"answers instead of the kubelet of other": func(o *Options) { o.Node = "other" },
		} {
			o := https
			change(&o)
			k := &stockKubelet{t, node, https, false}
			uid := k.put("refused")
			w := watchSide(t, o)
			w.Await(want, func(f audit.Kubelet) bool { return strings.Contains(f.KubeletAnswer.Err, want) })
			k.remove(uid, "refused")
		}
	})
	t.Run("whose status", func(t *testing.T) { whoseStatus(t, node, https, socket) })
}

// whoseStatus shows which status each way serves: with GET /pods that of the API, with the Pods API
// that of the kubelet, as soon as another writer has changed the API's.
func whoseStatus(t *testing.T, node *stock.Node, https, socket Options) {
	k := &stockKubelet{t, node, https, false}
	uid := k.put("written")
	byHTTPS, bySocket := watchSide(t, https), watchSide(t, socket)
	byHTTPS.Await("a pod", func(f audit.Kubelet) bool { return running(f, uid) })
	bySocket.Await("a pod", func(f audit.Kubelet) bool { return running(f, uid) })
	const lie = "a message that the kubelet has not written"
	patch := []byte(`{"status":{"message":"` + lie + `"}}`)
	// The kubelet writes its own status again sooner or later: the lie is written until it was seen.
	for byHTTPS.Side.Facts().KubeletPods[uid].Pod.Status.Message != lie {
		if _, err := node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Patch(t.Context(), "written", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		byHTTPS.look()
	}
	// A list that was asked for after the kubelet had the lie.
	bySocket.look()
	if got := bySocket.Side.Facts().KubeletPods[uid].Pod.Status; got.Message == lie || got.Phase != v1.PodRunning {
		t.Errorf("the Pods API has the status %+v, want the kubelet's own", got)
	}
	k.remove(uid, "written")
}
