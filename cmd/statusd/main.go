// Command statusd is a node of Kubernetes: it takes pods from the API server and from
// manifests, runs them as processes of this machine, and reports their status.
//
//	statusd run [FLAGS]              until SIGTERM or SIGINT; SIGHUP reloads the config
//	statusd config default           every setting with its default and what it is for
//	statusd config check [FILE]      what is wrong with a config and its manifests
//	statusd drain                    end the pods of a running statusd, as before a shutdown
//	statusd end                      end the containers that a stopped statusd has left
//	statusd reset                    end them and delete all state
//	statusd explain POD              why a pod is in its state, and what would change it
//	statusd version
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/runtime/process"
)

// errUsage is an error after which the usage helps.
var errUsage = errors.New("statusd --help says how it is used")

func main() {
	if process.IsShim() {
		os.Exit(process.ShimMain())
	}
	if err := command(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "statusd:", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// command runs a sub-command. What it is asked for goes to out, and how it goes to the log.
func command(args []string, out io.Writer) error {
	root := newRoot()
	root.SetOut(out)
	root.SetArgs(args)
	return root.Execute()
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "statusd",
		Short:   "statusd is a node of Kubernetes that runs pods as processes and reports their status",
		Example: "  statusd config default > statusd.yaml\n  statusd config check statusd.yaml\n  statusd run --config statusd.yaml",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if v, err := cmd.Flags().GetBool("version"); err == nil && v {
				return printVersion(cmd)
			}
			return cmd.Help()
		},
		SilenceErrors: true, // main prints them, once
		SilenceUsage:  true,
	}
	root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", err, errUsage) })
	root.AddCommand(newRun(), newConfig(), newDrain(), newEnd(), newReset(), newExplain(), newVersion())
	return root
}

// usage makes an error of the arguments one after which the usage helps.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w", err, errUsage)
		}
		return nil
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return printVersion(cmd) },
	}
}

func printVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "statusd", version())
	return err
}
