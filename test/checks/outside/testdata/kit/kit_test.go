// Package kit is what a module of an embedder tests: its journal and its runtime against the conformance
// suites, and a node that is made of the parts of the kit. It is built outside statusd's module.
package kit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/journal/journaltest"
	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/function"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/runtime/process/shim"
	"github.com/statusd/statusd/runtime/runtimetest"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

func TestMain(m *testing.M) {
	if process.IsShim() {
		os.Exit(process.ShimMain())
	}
	os.Exit(m.Run())
}

// A program of its own can be the parent of containers.
var _ = shim.Main

func TestJournalConforms(t *testing.T) {
	journaltest.Run(t, journaltest.Subject{New: func(*testing.T) journal.Journal { return journal.NewMemory() }})
}

func TestRuntimeConforms(t *testing.T) {
	runtimetest.Run(t, runtimetest.Config{Image: process.Image, Open: func(t *testing.T, dir string) (runtime.Runtime, func()) {
		rt, err := process.New(process.Options{Dir: dir, NodeIPs: []string{"127.0.0.1"}})
		if err != nil {
			t.Fatal(err)
		}
		return rt, func() { rt.Close() }
	}})
}

// The manager with a durable journal delivers an end, which the explanation then names.
func TestManagerReportsAnEnd(t *testing.T) {
	memory, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{NodeName: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	server := statustest.New()
	manager, err := status.New(status.Options{Client: server.Client(), Journal: memory})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- manager.Run(t.Context()) }()

	pod := server.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job", UID: "1"},
		Spec:       v1.PodSpec{NodeName: "edge", RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "job"}}},
	})
	manager.ObservePod(pod)
	exit := podstatus.Attempt{Container: "main", ID: "edge://1", State: podstatus.AttemptExited, ExitCode: 7, StartedAt: time.Now(), FinishedAt: time.Now()}
	facts := podstatus.Facts{Attempts: []podstatus.Attempt{exit}, Ended: true}
	if _, err := manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now())); err != nil {
		t.Fatal(err)
	}
	if err := manager.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	reported := server.Pod(pod)
	if reported.Status.Phase != v1.PodFailed {
		t.Errorf("the API has phase %s, want Failed", reported.Status.Phase)
	}
	if e := explain.Pod(explain.Facts{Now: time.Now(), Pod: reported}); e.State != explain.StateFailed {
		t.Errorf("the pod is explained as %s, want Failed", e.State)
	}
}

// The Node of a machine that is not this one, and the kubelet's API of the node.
func TestNodeAndItsAPI(t *testing.T) {
	web := httptest.NewServer(statustest.New())
	defer web.Close()
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: web.URL})
	described, err := node.Describe(node.Options{Client: client, Name: "edge", RuntimeVersion: "edge://1",
		Read: func() (node.Reading, error) { return node.Reading{CPUs: 2, MemoryTotal: 1 << 30}, nil }})
	if err != nil || described.Status.Capacity.Cpu().Value() != 2 {
		t.Errorf("got %v, %v; want a Node with 2 CPUs", described, err)
	}

	rt, err := function.New(function.Options{Run: func(ctx context.Context, _ function.Call) error { <-ctx.Done(); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := kubeletapi.SelfSigned(t.TempDir(), "edge", []string{"127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := kubeletapi.New(kubeletapi.Options{NodeName: "edge", Listener: listener, Certificate: certificate, Client: client, Pods: none{}, Runtime: rt})
	if err != nil {
		t.Fatal(err)
	}
	go server.Run(t.Context())
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := stranger.Get("https://" + listener.Addr().String() + "/pods")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a client without credentials got %s, want 401", answer.Status)
	}
}

// none is a node without pods.
type none struct{}

func (none) All() []*v1.Pod                        { return nil }
func (none) ByName(string, string) (*v1.Pod, bool) { return nil, false }
func (none) TranslateUID(uid types.UID) types.UID  { return uid }
