package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/shutdown"
)

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run as a node, until SIGTERM or SIGINT; SIGHUP reloads the config",
		Args:  usage(cobra.NoArgs),
	}
	settings := addSettings(cmd, agentConfig)
	cmd.RunE = func(*cobra.Command, []string) error {
		return keepRunning(daemonOf[agent.Config]{
			load: settings.config, check: agent.CheckConfig, start: startAgent,
			validate: func(c agent.Config) error { return c.Validate() },
			logger:   func(c agent.Config) *slog.Logger { return c.Log.Logger(os.Stderr) },
		})
	}
	return cmd
}

// startAgent gets the node its kubeconfig, makes the agent, and returns how to run it. Containers do not notice that
// an agent is stopped and another one started.
func startAgent(ctx context.Context, config agent.Config, supervisor agent.Supervisor, log *slog.Logger, reload func()) (func(context.Context) error, error) {
	options := agent.Options{
		NewRuntime: newRuntime(config), Version: version(), Logger: log, Supervisor: supervisor, Host: &shutdown.Logind{}, Reload: reload,
	}
	if err := agent.Bootstrap(ctx, config, options); err != nil {
		if ctx.Err() != nil {
			return nil, nil // stopped while it waited
		}
		return nil, err
	}
	a, err := agent.New(config, options)
	if err != nil {
		return nil, err
	}
	return a.Run, nil
}
