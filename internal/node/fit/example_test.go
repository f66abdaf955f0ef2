package fit_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/internal/node/fit"
)

func ExampleCheck() {
	node := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}}
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("768Mi")},
	}}}}}
	fmt.Println("alone:", fit.Check(node, pod, nil))
	rejection := fit.Check(node, pod, []*v1.Pod{pod})
	fmt.Println("beside another:", rejection.Reason)
	fmt.Println(rejection.Message)
	// Output:
	// alone: <nil>
	// beside another: OutOfmemory
	// Node didn't have enough resource: memory, requested: 805306368, used: 805306368, capacity: 1073741824
}
