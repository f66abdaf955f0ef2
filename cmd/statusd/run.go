package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"os"

	"github.com/statusd/statusd/agent"
)

// run is the daemon. The first SIGTERM or SIGINT stops it in order, the second at once.
func run(args []string) error {
	config, err := parseRun(args)
	if err != nil {
		return err
	}
	if err := config.Validate(); err != nil {
		return err
	}
	log := config.Log.Logger(os.Stderr)
	klog.SetSlogLogger(log) // what client-go says, in the same form
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // from then on a signal has its usual effect
	a, err := agent.New(config, agent.Options{Version: version(), Logger: log, Supervisor: agent.SupervisorFromEnvironment()})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// parseRun reads the config file that the flags name, and then the flags over it.
func parseRun(args []string) (agent.Config, error) {
	config := agent.Default()
	file, err := parseFlags(args, &config)
	if err != nil || file == "" {
		return config, err
	}
	if config, err = agent.LoadFile(file); err != nil {
		return config, err
	}
	_, err = parseFlags(args, &config)
	return config, err
}

func parseFlags(args []string, config *agent.Config) (file string, err error) {
	flags := pflag.NewFlagSet("statusd run", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&file, "config", "", "Config file; statusd config default prints one. Flags override it.")
	config.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return "", err
		}
		return "", fmt.Errorf("%w: %w", err, errUsage)
	}
	if flags.NArg() > 0 {
		return "", fmt.Errorf("run takes flags only, not %q: %w", flags.Arg(0), errUsage)
	}
	return file, nil
}
