package runtime_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

// The life of a pod as a runtime sees it. Here the runtime is a fake.
func Example() {
	ctx := context.Background()
	var rt runtime.Runtime = runtimefake.New()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
	fmt.Println("unsupported:", rt.Check(pod))
	if err := rt.StartPod(ctx, pod); err != nil {
		panic(err)
	}
	id, err := rt.StartContainer(ctx, pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		panic(err)
	}
	show := func() {
		found, err := rt.Pod(ctx, pod.UID)
		if err != nil {
			panic(err)
		}
		fmt.Println(found.Containers[0].Name, found.Containers[0].State)
	}
	show()
	if err := rt.StopContainer(ctx, id, 0); err != nil {
		panic(err)
	}
	show()
	// Output:
	// unsupported: []
	// main Running
	// main Exited
}
