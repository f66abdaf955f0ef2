package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/node/shutdown/logind"
	"github.com/statusd/statusd/internal/run"
)

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run as a node, until SIGTERM or SIGINT; SIGHUP reloads the config",
		Args:  usage(cobra.NoArgs),
	}
	settings := addSettings(cmd, agentConfig)
	cmd.RunE = func(*cobra.Command, []string) (err error) {
		memory := &agent.Memory{}
		defer func() { err = errors.Join(err, memory.Close()) }() // after a reload that failed, clients get an error
		return keepRunning(daemonOf[run.Config]{
			load: settings.config, check: run.CheckConfig, follows: true,
			start: func(ctx context.Context, config run.Config, supervisor agent.Supervisor, log *slog.Logger, reload func()) (func(context.Context) error, error) {
				return startAgent(ctx, config, agent.Options{
					NewRuntime: newRuntime(config), Successor: successor(config), Version: version(), Logger: log, Supervisor: supervisor, Host: &logind.Host{}, Reload: reload, Memory: memory,
				})
			},
			validate: func(c run.Config) error { return c.Validate() },
			logger:   func(c run.Config) *slog.Logger { return c.Log.Logger(os.Stderr) },
		})
	}
	return cmd
}

// startAgent gets the node its kubeconfig, makes the agent, and returns how to run it. Containers do not notice that
// an agent is stopped and another one started.
func startAgent(ctx context.Context, config run.Config, options agent.Options) (func(context.Context) error, error) {
	if err := agent.Bootstrap(ctx, config.Config, options); err != nil {
		if ctx.Err() != nil {
			return nil, nil // stopped while it waited
		}
		return nil, err
	}
	a, err := run.New(config, options)
	if err != nil {
		return nil, err
	}
	return a.Run, nil
}
