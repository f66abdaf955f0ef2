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
  lives record  -agent kubelet|statusd|statusd-cri|kubelet-statusd [-runs N] [-out DIR] [POD...]
  lives compare [-with statusd|statusd-cri|kubelet-statusd] [-doc FILE] [-block NAME]
  lives list    [-with statusd|statusd-cri|kubelet-statusd] POD...

Run it in test/upstream/lives. record takes the names of pods in pods/, all by default`)

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
		flags.StringVar(&o.agent, "agent", "", "what looks after the node: kubelet, statusd, statusd-cri, statusd on a containerd, or kubelet-statusd, the kubelet with statusd's manager")
		flags.StringVar(&o.out, "out", "recordings", "where the recordings go, into a directory for each agent")
		flags.IntVar(&o.runs, "runs", 3, "how often to record each pod; the most typical recording is kept")
		_ = flags.Parse(args[1:]) // ends the program itself
		return record(ctx, o, flags.Args())
	case "compare":
		with := flags.String("with", "statusd", "the agent that the stock kubelet is compared with")
		doc := flags.String("doc", "../../../docs/evidence/podlives.md", "the document to renew the table of")
		block := flags.String("block", "table", "the name of the table in the document")
		_ = flags.Parse(args[1:])
		return compare(*with, *doc, *block)
	case "list":
		with := flags.String("with", "statusd", "the agent that the stock kubelet is compared with")
		_ = flags.Parse(args[1:])
		return list(*with, flags.Args())
	}
	return errUsage
}
