package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var errUsage = errors.New(`usage:
  lives record  -kubeconfig FILE -node NAME -manifests DIR -out DIR [-runs N] [POD...]
  lives compare [-doc FILE]

Run it in rival/lives. record takes the names of pods in pods/, all by default`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lives:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	switch args[0] {
	case "record":
		var o recordOptions
		flags.StringVar(&o.kubeconfig, "kubeconfig", "", "an administrator's kubeconfig")
		flags.StringVar(&o.node, "node", "local", "the node that the pods are bound to")
		flags.StringVar(&o.manifests, "manifests", "", "the directory of the node's static pods")
		flags.StringVar(&o.out, "out", "", "where the recordings go")
		flags.IntVar(&o.runs, "runs", 3, "how often to record each pod; the most typical recording is kept")
		_ = flags.Parse(args[1:]) // ends the program itself
		return record(ctx, o, flags.Args())
	case "compare":
		doc := flags.String("doc", "../../docs/kubelet-comparison.md", "the document to renew the listings of")
		_ = flags.Parse(args[1:])
		return compare(*doc)
	}
	return errUsage
}
