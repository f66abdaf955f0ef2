package statustest_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

// A test asks whether a status survives that the server is away at first.
func Example() {
	server := statustest.New()
	manager, err := status.New(status.Options{Client: server.Client()})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- manager.Run(ctx) }()

	pod := server.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       v1.PodSpec{NodeName: "node", Containers: []v1.Container{{Name: "main"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	})
	failures := 2
	server.SetFault(func(_ context.Context, r statustest.Request) error {
		if r.Verb == "PATCH" && failures > 0 {
			failures--
			return statustest.Throttled(1)
		}
		return nil
	})
	manager.ObservePod(pod)
	manager.SetPodStatus(pod, v1.PodStatus{Phase: v1.PodRunning})
	fmt.Println(manager.Flush(ctx), server.Pod(pod).Status.Phase)
	stop()
	<-done
	for _, r := range server.Requests() {
		if r.Verb == "PATCH" {
			fmt.Println(r, r.Err)
		}
	}
	// Output:
	// <nil> Running
	// PATCH default/web too many requests
	// PATCH default/web too many requests
	// PATCH default/web <nil>
}
