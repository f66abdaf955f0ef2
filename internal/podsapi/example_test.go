package podsapi_test

import (
	"context"
	"fmt"

	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusd/statusd/internal/podsapi"
)

// A program that knows pods implements Source; clients of the kubelet's Pods API can then ask it.
func ExampleNew() {
	node := newFakeNode()
	node.set("web", "")
	server, err := podsapi.New(podsapi.Options{Source: node})
	if err != nil {
		fmt.Println(err)
		return
	}
	// server.Run(ctx, listener) serves it; here it is asked directly.
	list, err := server.ListPods(context.Background(), &podsv1alpha1.ListPodsRequest{})
	fmt.Println(len(list.GetPods()), err)
	// Output: 1 <nil>
}
