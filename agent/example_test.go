package agent_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/runtime/function"
)

// A whole node: pods that are bound to it run as calls of a function.
func Example() {
	rt, err := function.New(function.Options{Run: func(ctx context.Context, call function.Call) error {
		<-ctx.Done() // whatever running a container means here
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	config := agent.Embedded("my-node")
	config.Kubeconfig = "/etc/my-node/kubeconfig"
	node, err := agent.New(config, agent.Options{Runtime: rt})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := node.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
