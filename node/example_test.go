package node_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusd/statusd/node"
)

// The Node object of a machine that is not the one this program runs on.
func ExampleDescribe() {
	described, err := node.Describe(node.Options{
		Client:         fake.NewClientset(),
		Name:           "cluster-a",
		RuntimeVersion: "batch://v2",
		Read: func() (node.Reading, error) {
			return node.Reading{Addresses: []string{"192.0.2.7"}, CPUs: 64, MemoryTotal: 256 << 30, MemoryAvailable: 200 << 30}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(described.Name, described.Status.Capacity.Cpu(), described.Status.NodeInfo.ContainerRuntimeVersion)
	fmt.Println(described.Status.Addresses[0].Type == v1.NodeInternalIP, described.Status.Addresses[0].Address)
	// Output:
	// cluster-a 64 batch://v2
	// true 192.0.2.7
}
