package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/internal/unixsocket"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/test/background"
	"github.com/statusd/statusd/test/testlog"
)

// settledNode is a node with pods that have come to rest: one runs, one has succeeded, one has failed.
func settledNode(t *testing.T, change ...func(*run.Config)) (*run.Process, run.Config) {
	t.Helper()
	config := run.Default()
	config.NodeName, config.StateDir, config.Manifests = "n1", t.TempDir(), t.TempDir()
	config.HealthzBindAddress, config.Server.BindAddress, config.CgroupParent = "127.0.0.1:0", "", ""
	config.Eviction.Hard = eviction.Disabled()
	for _, c := range change {
		c(&config)
	}
	rt := runtimefake.New()
	rt.Script(func(_ *v1.Pod, c *v1.Container, _ int) runtimefake.Behavior {
		switch c.Name {
		case "done":
			return runtimefake.Behavior{Lives: time.Millisecond}
		case "failed":
			return runtimefake.Behavior{Lives: time.Millisecond, ExitCode: 3}
		}
		return runtimefake.Behavior{}
	})
	for _, name := range []string{"steady", "done", "failed"} {
		writeFile(t, filepath.Join(config.Manifests, name+".yaml"), fmt.Sprintf(
			"apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {restartPolicy: Never, containers: [{name: %s, image: host}]}\n", name, name))
	}
	node, err := run.New(config, agent.Options{Runtime: rt, Logger: testlog.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, node.Run)
	return node, config
}

// seen are pods as PHASE READY RESTARTS, by name.
type seen map[string]string

func (s seen) row(p *view.PodSummary) {
	s[p.Name] = fmt.Sprint(p.Phase, " ", p.Ready, " ", p.Restarts)
}

func (s seen) pod(p *v1.Pod) {
	ready, restarts := 0, int32(0)
	for _, c := range p.Status.ContainerStatuses {
		restarts += c.RestartCount
		if c.Ready {
			ready++
		}
	}
	s[p.Name] = fmt.Sprint(p.Status.Phase, " ", ready, " ", restarts)
}

var settled = seen{"steady-n1": "Running 1 0", "done-n1": "Succeeded 0 0", "failed-n1": "Failed 0 0"}

// watched follows the stream that the page reads until the pods have come to rest.
func watched(t *testing.T, client *queryapi.Client) seen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	found := seen{}
	for event, err := range client.Watch(ctx, "", "") {
		if err != nil {
			t.Fatalf("the stream has %v: %v", found, err)
		}
		if event.Kind == "pod" {
			var row view.PodSummary
			if err := json.Unmarshal(event.Data, &row); err != nil {
				t.Fatal(err)
			}
			found.row(&row)
		}
		if maps.Equal(found, settled) {
			break
		}
	}
	return found
}

// HTTP as curl asks it, the stream that the page reads, the command line, and the gRPC socket say the same
// of a running node.
func TestAllAnswersAgree(t *testing.T) {
	node, config := settledNode(t)
	client, err := queryapi.NewClient("http://" + node.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answers := map[string]seen{"stream": watched(t, client), "kubelet": {}, "command line": {}, "grpc": {}}

	response, err := http.Get("http://" + node.Address() + "/pods")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list v1.PodList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		answers["kubelet"].pod(&list.Items[i])
	}

	var out strings.Builder
	if err := command([]string{"get", "pods", "-A", "-o", "json", "--socket", config.QuerySocketPath()}, &out); err != nil {
		t.Fatal(err)
	}
	var rows view.PodList
	if err := json.Unmarshal([]byte(out.String()), &rows); err != nil {
		t.Fatal(err)
	}
	for i := range rows.Items {
		answers["command line"].row(&rows.Items[i])
	}

	for _, data := range overGRPC(t, config.PodsSocketPath()) {
		pod := &v1.Pod{}
		if err := pod.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		answers["grpc"].pod(pod)
	}
	for who, found := range answers {
		if !maps.Equal(found, settled) {
			t.Errorf("%s says %v, want %v", who, found, settled)
		}
	}

	// The explanation and the history agree too.
	detail, err := client.Pod(t.Context(), "default", "failed-n1")
	if err != nil || len(detail.History) == 0 {
		t.Errorf("got %+v, %v", detail, err)
	}
	out.Reset()
	if err := command([]string{"explain", "failed-n1", "--socket", config.QuerySocketPath()}, &out); err != nil || !strings.HasPrefix(out.String(), "Pod default/failed-n1 has failed") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if first, _, _ := strings.Cut(detail.Why, ","); !strings.HasPrefix(out.String(), first) {
		t.Errorf("the command line says %q, the API %q", out.String(), detail.Why)
	}
}

func overGRPC(t *testing.T, socket string) [][]byte {
	t.Helper()
	connection, err := grpc.NewClient("passthrough:///pods", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return unixsocket.Dial(ctx, socket) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	}()
	list, err := podsv1alpha1.NewPodsClient(connection).ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return list.GetPods()
}
