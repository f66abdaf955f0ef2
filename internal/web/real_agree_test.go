//go:build real

package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/internal/unixsocket"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/test/binaries"
)

// allAgree asks a node whose one pod has come to rest in four ways: what the page shows, what curl gets, what the
// command prints, and what the gRPC socket of the kubelet's Pods API says are the same.
func allAgree(t *testing.T, page *tab, c *run.Config) {
	t.Helper()
	page.goTo("#/")
	shown := eval[string](page, `[...document.querySelectorAll('#pods tr:not([hidden])')].map((row) =>
		[...row.querySelectorAll('.name, .namespace, .status, .ready, .restarts')].map((cell) => cell.textContent).join(' ')).join('\n')`)
	answers := map[string]string{
		"curl":        rowOf(t, fetch(t, "http://"+c.HealthzBindAddress+"/apis/v1/pods")),
		"the command": rowOf(t, fromCommand(t, c)),
		"gRPC":        fromSocket(t, c),
	}
	for who, said := range answers {
		if said != shown {
			t.Errorf("%s says %q, the page %q", who, said, shown)
		}
	}
}

func fetch(t *testing.T, url string) (list view.PodList) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

func fromCommand(t *testing.T, c *run.Config) (list view.PodList) {
	t.Helper()
	output, err := exec.Command(binaries.Path(t, binaries.Statusd), "get", "pods", "-A", "-o", "json", "--socket", c.QuerySocketPath()).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(output, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func rowOf(t *testing.T, list view.PodList) string {
	t.Helper()
	if len(list.Items) != 1 {
		t.Fatalf("%d pods, want 1", len(list.Items))
	}
	p := list.Items[0]
	return fmt.Sprintf("%s %s %s %d/%d %d", p.Name, p.Namespace, p.Status, p.Ready, p.Containers, p.Restarts)
}

func fromSocket(t *testing.T, c *run.Config) string {
	t.Helper()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return unixsocket.Dial(ctx, c.PodsSocketPath()) }
	connection, err := grpc.NewClient("passthrough:///pods", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	list, err := podsv1alpha1.NewPodsClient(connection).ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
	if err != nil || len(list.GetPods()) != 1 {
		t.Fatalf("%d pods, %v", len(list.GetPods()), err)
	}
	var pod v1.Pod
	if err := pod.Unmarshal(list.GetPods()[0]); err != nil {
		t.Fatal(err)
	}
	s := pod.Status.ContainerStatuses[0]
	ready := map[bool]int{true: 1}[s.Ready]
	return fmt.Sprintf("%s %s %s %d/%d %d", pod.Name, pod.Namespace, pod.Status.Phase, ready, len(pod.Spec.Containers), s.RestartCount)
}
