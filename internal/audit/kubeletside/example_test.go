package kubeletside_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit/kubeletside"
)

// A kubelet that cannot be asked is unknown, with the reason.
func ExampleSide() {
	ctx, cancel := context.WithCancel(context.Background())
	side, err := kubeletside.New(kubeletside.Options{
		Node:    "n1",
		Socket:  "/nonexistent/pods-api.sock",
		Changed: func(types.UID) { cancel() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := side.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(side.Facts().KubeletAnswer.Err)
	// Output: /nonexistent/pods-api.sock: there is no socket of the Pods API: enable the kubelet's feature gate PodsAPI, or configure its HTTPS endpoint
}
