//go:build real

package agent

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/doors"
	"github.com/statusd/statusd/test/nodetest"
)

// joinedConfig is that of a node of the server's cluster which serves the kubelet's API.
func joinedConfig(t *testing.T, server *controlplanetest.Server, node string) Config {
	t.Helper()
	c := testConfig(t, node)
	server.NodeConfig(t, node)
	kubeconfig, err := server.Process.NodeKubeconfig(node)
	if err != nil {
		t.Fatal(err)
	}
	c.Kubeconfig = kubeconfig
	c.Server = ServerConfig{BindAddress: "127.0.0.1:0", ClientCAFile: filepath.Join(server.Process.DataDir(), "pki", "ca.crt")}
	return c
}

// getAsMaster reads a path of the agent's server with a certificate that may do everything.
func getAsMaster(t *testing.T, server *controlplanetest.Server, address, path string) (int, string) {
	t.Helper()
	authority, err := doors.LoadAuthority(filepath.Join(server.Process.DataDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Sign(doors.Certificate(pkix.Name{CommonName: "root", Organization: []string{"system:masters"}}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*pair}}}
	defer transport.CloseIdleConnections()
	return nodetest.Read(t, &http.Client{Transport: transport}, "https://"+address+path)
}

func TestRealServer_TheKubeletsAPIIsServedWhereTheNodeSays(t *testing.T) {
	server := shared.Server(t)
	const node = "serves"
	c := joinedConfig(t, server, node)
	a, _ := run(t, c)
	awaitReadyMirror(t, server, "default", "sleeper-"+node)
	awaitNode(t, server, node, v1.ConditionTrue, "") // its status comes after its UID, with which mirrors are made

	_, port, err := net.SplitHostPort(a.ServerAddress())
	if err != nil {
		t.Fatal(err)
	}
	object, err := server.Admin().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if said := strconv.Itoa(int(object.Status.DaemonEndpoints.KubeletEndpoint.Port)); said != port {
		t.Errorf("the Node says port %s, the server has %s", said, port)
	}
	status, body := getAsMaster(t, server, a.ServerAddress(), "/pods")
	var list v1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "sleeper-"+node || len(list.Items[0].Spec.Containers[0].Command) == 0 || !isReady(&list.Items[0].Status) {
		t.Errorf("got pods %s, want the static one, with its whole spec and status", body)
	}
	container := list.Items[0].Spec.Containers[0].Name
	for path, want := range map[string]string{
		"/containerLogs/default/sleeper-" + node + "/" + container: "",
		"/healthz":        "ok",
		"/configz":        `"nodeName":"` + node + `"`,
		"/metrics":        "statusd_pods 1",
		"/metrics/probes": "",
		"/runningpods/":   "sleeper-" + node,
		"/stats/summary":  `"nodeName":"` + node + `"`,
	} {
		if status, body := getAsMaster(t, server, a.ServerAddress(), path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s, want %s", path, status, body, want)
		}
	}
}
