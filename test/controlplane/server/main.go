package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// A second signal ends the process at once: the handler is gone by then.
	context.AfterFunc(ctx, stop)

	stderr := keepStderr() // for the one line that says what went wrong
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case errors.Is(err, context.Canceled) && ctx.Err() != nil: // stopped while it started
	case err != nil:
		fmt.Fprintf(stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "kubeconfig":
			return kubeconfigCommand(args[1:], os.Stdout)
		case "certificate":
			return certificateCommand(args[1:])
		}
	}
	options, err := parseServe(args)
	if err != nil {
		return err
	}
	return serve(ctx, options)
}
