package nodedown_test

import (
	"context"
	"fmt"

	"github.com/statusd/statusd/guard/nodedown"
	"github.com/statusd/statusd/shutdown"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a program runs it until it ends
	down := nodedown.New(nodedown.Options{
		Host:  &shutdown.Logind{},
		Stop:  func(context.Context) error { return nil }, // stops the kubelet
		Start: func(context.Context) error { return nil }, // starts it again
	})
	fmt.Println(down.Run(ctx), down.Under())
	// Output: <nil> false
}
