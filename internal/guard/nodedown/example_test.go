package nodedown_test

import (
	"context"
	"fmt"

	"github.com/statusd/statusd/internal/guard/nodedown"
	"github.com/statusd/statusd/internal/node/shutdown/logind"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a program runs it until it ends
	down := nodedown.New(nodedown.Options{
		Host:  &logind.Host{},
		Stop:  func(context.Context) error { return nil }, // stops the kubelet
		Start: func(context.Context) error { return nil }, // starts it again
	})
	fmt.Println(down.Run(ctx), down.Under())
	// Output: <nil> false
}
