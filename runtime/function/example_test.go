package function_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime/function"
)

// Containers are calls of a function. What it cannot honor is refused by name.
func Example() {
	rt, err := function.New(function.Options{Name: "hello", Run: func(ctx context.Context, call function.Call) error {
		_, err := fmt.Fprintln(call.Log, "hello from", call.Container.Name)
		return err
	}})
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	pod := &v1.Pod{Spec: v1.PodSpec{
		Containers: []v1.Container{{Name: "main"}},
		Volumes:    []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/data"}}}},
	}}
	for _, u := range rt.Check(pod) {
		fmt.Println(u.Field)
	}
	// Output: spec.volumes[0].hostPath
}
