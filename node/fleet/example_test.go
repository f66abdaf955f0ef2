package fleet_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/node/fleet"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

// runner starts the containers of a pod in name only.
type runner struct {
	manager *status.Manager
	started chan string
}

func (r runner) SyncPod(_ context.Context, pod *v1.Pod) {
	facts := podstatus.Facts{Sandbox: true}
	for _, c := range pod.Spec.Containers {
		facts.Attempts = append(facts.Attempts, podstatus.Attempt{Container: c.Name, ID: "example://" + string(pod.UID), State: podstatus.AttemptRunning})
	}
	changed, err := r.manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now()))
	if changed && err == nil {
		r.started <- pod.Spec.NodeName + " runs " + pod.Name
	}
}

func (runner) ForgetPod(context.Context, *v1.Pod) {}

func Example() {
	server := statustest.New() // a real program has a rest.Config of its cluster
	client, leases, err := fleet.Clients(server.Config())
	if err != nil {
		panic(err)
	}
	nodes, err := fleet.New(fleet.Options{Client: client, Leases: leases})
	if err != nil {
		panic(err)
	}
	started := make(chan string)
	for _, name := range []string{"rack-1", "rack-2"} {
		if _, err := nodes.Add(fleet.NodeOptions{Options: node.Options{Name: name}, Handler: runner{nodes.Manager(), started}}); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- nodes.Run(ctx) }()

	server.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       v1.PodSpec{NodeName: "rack-2", Containers: []v1.Container{{Name: "main", Image: "web"}}},
	})
	fmt.Println(<-started)
	cancel()
	fmt.Println(<-done)
	// Output:
	// rack-2 runs web
	// <nil>
}
