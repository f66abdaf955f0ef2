package worker_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/status"
)

// A pod is started, and its status reported, from its manifest alone.
func Example() {
	manager, err := status.New(status.Options{}) // without a client nothing is sent
	if err != nil {
		panic(err)
	}
	workers, err := worker.New(worker.Options{Runtime: runtimefake.New(), Status: struct {
		*status.Manager
		*status.Resizes
	}{manager, manager.Resizes()}})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- workers.Run(ctx) }()

	statuses := manager.Subscribe()
	defer statuses.Close()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
	manager.ObservePod(pod)
	workers.Update(pod)
	for {
		event, err := statuses.Next(ctx)
		if err != nil {
			panic(err)
		}
		if event.Status.Phase == v1.PodRunning {
			fmt.Println(event.Name, event.Status.Phase)
			break
		}
	}
	stop()
	<-done
	// Output: web Running
}
