package probe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/node/probe"
	"github.com/statusd/statusd/runtime"
)

// results takes what a prober finds, as the status manager does.
type results struct {
	status v1.PodStatus
	ready  chan bool
}

func (r *results) GetPodStatus(types.UID) (v1.PodStatus, bool)       { return r.status, true }
func (r *results) SetContainerStartup(types.UID, string, bool) error { return nil }
func (r *results) SetContainerReadiness(_ types.UID, _ string, ready bool) error {
	r.ready <- ready
	return nil
}

// A container is probed from the status that first shows it running.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		panic(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", ReadinessProbe: &v1.Probe{
			ProbeHandler:  v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Host: address.Hostname(), Port: intstr.Parse(address.Port()), Path: "/", Scheme: v1.URISchemeHTTP}},
			PeriodSeconds: 1, TimeoutSeconds: 10, SuccessThreshold: 1, FailureThreshold: 1,
		}}}},
	}
	started := true
	running := v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
		Name: "main", ContainerID: "vm://1", Started: &started,
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now())}},
	}}}
	found := &results{status: running, ready: make(chan bool, 100)}
	prober, err := probe.New(probe.Options{
		Status: found,
		Exec: func(context.Context, string, []string) (runtime.ExecResult, error) {
			return runtime.ExecResult{}, runtime.ErrNotRunning
		},
		Unhealthy: func(f probe.Failure) { fmt.Println("restart", f.ContainerID) },
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- prober.Run(ctx) }()
	prober.AddPod(pod)
	prober.UpdatePodStatus(pod, &running)
	fmt.Println("ready:", <-found.ready)
	stop()
	<-done
	// Output: ready: true
}
