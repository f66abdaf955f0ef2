//go:build real

package agent

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/patience"
)

// serve answers probes at an address until the test or stop ends it.
func serve(t *testing.T, address string) (port string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	stop = sync.OnceFunc(func() { server.Close(); <-done })
	t.Cleanup(stop)
	_, port, err = net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, stop
}

// The machine gets an address after the start, and then another one. Statuses, the Node and the
// targets of probes follow, and no container is restarted by a probe of the old address.
func TestAddressesFollowTheMachine(t *testing.T) {
	server := shared.Server(t)
	machine := &fakeMachine{}
	port, stopOld := serve(t, "127.0.0.1:0")
	c := testConfig(t, "moving")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("moving"); err != nil {
		t.Fatal(err)
	}
	probed := strings.ReplaceAll(`{apiVersion: v1, kind: Pod, metadata: {name: probed}, spec: {containers: [{name: main, image: host, command: [sleep, "1000000"],
		readinessProbe: {httpGet: {port: PORT}, periodSeconds: 1, failureThreshold: 1},
		livenessProbe: {httpGet: {port: PORT}, periodSeconds: 1, failureThreshold: 30}}]}}`, "PORT", port)
	if err := os.WriteFile(filepath.Join(c.Manifests, "probed.yaml"), []byte(probed), 0o644); err != nil {
		t.Fatal(err)
	}
	a, _ := runWith(t, c, Options{Machine: machine.read, machineInterval: 10 * time.Millisecond})
	awaitStatus(t, a, "sleeper-moving", "that it runs without an address", func(s *v1.PodStatus) bool { return isReady(s) && s.HostIP == "" && s.PodIP == "" })

	at := func(address string) func(*v1.PodStatus) bool {
		return func(s *v1.PodStatus) bool {
			return isReady(s) && s.HostIP == address && s.PodIP == address && len(s.HostIPs) == 1 && len(s.PodIPs) == 1
		}
	}
	machine.set("127.0.0.1")
	awaitStatus(t, a, "probed-moving", "the first address", at("127.0.0.1"))
	serve(t, net.JoinHostPort("127.0.0.2", port)) // before the other ends, so that nothing else takes the port
	stopOld()
	machine.set("127.0.0.2")
	moved := awaitStatus(t, a, "probed-moving", "the second address, ready", at("127.0.0.2"))
	if restarts := moved.ContainerStatuses[0].RestartCount; restarts != 0 {
		t.Errorf("the container was restarted %d times by probes of the old address", restarts)
	}
	awaitStatus(t, a, "sleeper-moving", "the second address", at("127.0.0.2"))
	awaitNodeAddress(t, a, "moving", "127.0.0.2")
}

func awaitNodeAddress(t *testing.T, a *Agent, name, want string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	events, err := a.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if n, ok := event.Object.(*v1.Node); ok && n.Status.Addresses[0].Address == want {
			return
		}
	}
	t.Errorf("the Node did not get address %s", want)
}
