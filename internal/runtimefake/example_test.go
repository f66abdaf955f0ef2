package runtimefake_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/runtimefake"
)

// A container that ends when the test says so.
func Example() {
	ctx := context.Background()
	rt := runtimefake.New()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "1"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}}}}
	if err := rt.StartPod(ctx, pod); err != nil {
		panic(err)
	}
	id, err := rt.StartContainer(ctx, pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		panic(err)
	}
	rt.Exit(id, runtimefake.Exit{Code: 3})
	found, err := rt.Pod(ctx, pod.UID)
	fmt.Println(found.Containers[0].State, found.Containers[0].ExitCode, err)
	// Output: Exited 3 <nil>
}
