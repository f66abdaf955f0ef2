package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/internal/observer"
	"github.com/statusd/statusd/internal/run"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Print or check a config",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("want config default, or config check [FILE]: %w", errUsage)
		},
	}
	cmd.AddCommand(newConfigDefault(), newConfigCheck())
	return cmd
}

func newConfigDefault() *cobra.Command {
	cmd := &cobra.Command{Use: "default", Short: "Print every setting with its default and what it is for", Args: usage(cobra.NoArgs)}
	observe := cmd.Flags().Bool("observe", false, "Print the settings of statusd observe instead of statusd run.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *observe {
			return observer.WriteDefault(cmd.OutOrStdout())
		}
		return run.WriteDefault(cmd.OutOrStdout())
	}
	return cmd
}

func newConfigCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a config file, the flags that override it, and its manifests",
		Args:  usage(cobra.MaximumNArgs(1)),
	}
	settings := addSettings(cmd, agentConfig)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			settings.file = args[0]
		}
		return checkConfig(cmd, settings)
	}
	return cmd
}

// checkConfig says everything that is wrong, not only the first thing. Without a file the
// defaults are checked, which means the manifests where they are by default.
func checkConfig(cmd *cobra.Command, settings *settings[run.Config]) error {
	config, err := settings.config()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	pods, problems := check(ctx, config)
	if len(problems) > 0 {
		return fmt.Errorf("%s (%d static pods checked):\n%w", count(len(problems), "problem"), pods, errors.Join(problems...))
	}
	out := cmd.OutOrStdout()
	if _, err := os.Stat(config.Manifests); config.Manifests != "" && errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "note: %s does not exist yet; static pods start when it does\n", config.Manifests)
	}
	_, err = fmt.Fprintf(out, "ok: the config is valid, and %s defines %d static pods\n", config.Manifests, pods)
	return err
}
