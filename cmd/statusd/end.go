package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/run"
)

// interruptible is a context that ends with SIGINT or SIGTERM.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}

func newDrain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "End the pods of a running statusd, as before a shutdown of the machine",
		Long: "End the pods of the running statusd, ordinary ones before critical ones, within shutdownGracePeriod.\n" +
			"The node is not ready and takes no pods until statusd drain --undo, or until statusd is restarted.",
		Args: usage(cobra.NoArgs),
	}
	settings := addSettings(cmd, agentConfig)
	undo := cmd.Flags().Bool("undo", false, "Accept pods again, and run static pods again.")
	cmd.RunE = settings.doing(func(ctx context.Context, config run.Config) (string, error) {
		do := agent.Drain
		if *undo {
			do = agent.Undrain
		}
		said, err := do(ctx, config.Config)
		if errors.Is(err, agent.ErrNotRunning) {
			err = fmt.Errorf("%w; statusd end ends what a stopped one has left", err)
		}
		return said, err
	})
	return cmd
}

func newEnd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "end",
		Short: "End all containers that a stopped statusd has left running",
		Long: "End all containers that statusd has left running, and check that no process of the containers is left.\n" +
			"statusd itself must be stopped. Its state stays, and the next statusd reports how the containers have ended.",
		Args: usage(cobra.NoArgs),
	}
	settings := addSettings(cmd, agentConfig)
	grace := cmd.Flags().Duration("grace", 10*time.Second, "Time between SIGTERM and SIGKILL.")
	cmd.RunE = settings.doing(func(ctx context.Context, config run.Config) (string, error) {
		ended, err := end(ctx, config, *grace)
		return fmt.Sprintf("ended %d containers; no process of theirs is left", ended), err
	})
	return cmd
}

func newReset() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "End all containers and delete everything that statusd keeps",
		Long: "End all containers that statusd has left running, check that no process of the containers is left, and delete\n" +
			"what statusd keeps in its state directory: the journal, containers with logs and volumes, certificates.\n" +
			"statusd itself must be stopped. Statuses that were not delivered are lost.",
		Args: usage(cobra.NoArgs),
	}
	settings := addSettings(cmd, agentConfig)
	grace := cmd.Flags().Duration("grace", 10*time.Second, "Time between SIGTERM and SIGKILL.")
	yes := cmd.Flags().Bool("yes", false, "Really do it.")
	cmd.RunE = settings.doing(func(ctx context.Context, config run.Config) (string, error) {
		if !*yes {
			return "", fmt.Errorf("reset deletes everything that statusd keeps in %s; add --yes to do it: %w", config.StateDir, errUsage)
		}
		ended, err := reset(ctx, config, *grace)
		return fmt.Sprintf("ended %d containers and deleted the state in %s", ended, config.StateDir), err
	})
	return cmd
}
