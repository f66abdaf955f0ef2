// Command node is a whole Kubernetes node whose containers are calls of a Go function: node KUBECONFIG NODE.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/runtime/function"
)

func main() {
	runtime, err := function.New(function.Options{Name: "example", Run: container})
	check(err)
	config := agent.Embedded(os.Args[2])
	config.Kubeconfig = os.Args[1]
	node, err := agent.New(config, agent.Options{Runtime: runtime})
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check(node.Run(ctx))
	check(node.Close())
	check(runtime.Close())
}

// container runs one container: the arguments are the texts that it prints, one each second; without
// any it serves until it is stopped.
func container(ctx context.Context, c function.Call) error {
	for _, text := range c.Container.Args {
		fmt.Fprintln(c.Log, text)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return &function.ExitError{Code: 143, Message: "stopped"}
		}
	}
	if len(c.Container.Args) == 0 {
		<-ctx.Done()
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
