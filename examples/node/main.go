// Command node is a whole Kubernetes node whose containers are calls of a Go function: node KUBECONFIG NODE.
// Pods for it tolerate the taint statusd/embedded.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/runtime/function"
)

func main() {
	runtime, err := function.New(function.Options{Name: "example", Run: container, IPs: function.Loopback})
	check(err)
	config := agent.Embedded(os.Args[2])
	config.Kubeconfig = os.Args[1]
	node, err := agent.New(config, agent.Options{Runtime: runtime})
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check(errors.Join(node.Run(ctx), node.Close(), runtime.Close()))
}

// container runs one container: the arguments are the texts that it prints, one each second; without
// any it serves HTTP at its ports until it is stopped.
func container(ctx context.Context, c function.Call) error {
	for _, text := range c.Container.Args {
		fmt.Fprintln(c.Log, text)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return &function.ExitError{Code: 143, Message: "stopped"}
		}
	}
	if len(c.Container.Args) > 0 {
		return nil
	}
	return serve(ctx, c)
}

// serve answers every request with the name of the pod.
func serve(ctx context.Context, c function.Call) error {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello from", c.Pod.Name) })
	ended := make(chan error, len(c.Container.Ports))
	for _, port := range c.Container.Ports {
		address := net.JoinHostPort(function.Loopback(c.Pod)[0], fmt.Sprint(port.ContainerPort))
		server := &http.Server{Addr: address, Handler: hello, ReadHeaderTimeout: 10 * time.Second}
		defer server.Close() // when serve returns
		go func() { ended <- server.ListenAndServe() }()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
