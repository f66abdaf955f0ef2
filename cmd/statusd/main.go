// Command statusd is a Kubernetes node: it takes pods from the API server and from
// manifests, runs them as processes of this machine, and reports their status.
//
//	statusd run [FLAGS]              until SIGTERM or SIGINT; SIGHUP reloads the config
//	statusd observe [FLAGS]          beside a kubelet: is what the API says about this node true?
//	statusd config default           print every setting with its default and purpose
//	statusd config check [FILE]      report problems of a config and its manifests
//	statusd drain                    end the pods of a running statusd, as before a shutdown
//	statusd end                      end the containers that a stopped statusd has left
//	statusd reset                    end these containers and delete all state
//	statusd adopt                    take over the running pods of a kubelet, or give them back
//	statusd get pods|node            list the pods of this node or another one, or show the node
//	statusd explain POD|TYPE/NAME    why a pod is in its state or missing, and what would change it
//	statusd history POD              what happened to a pod
//	statusd watch                    each change, as it happens
//	statusd rules check|test FILE    check or test alert rules
//	statusd audit [POD]              differences between the API's report and the machine, and what to do
//	statusd guard                    how healthy the kubelet is, and when it was restarted
//	statusd nodes                    all nodes of a cluster as their observers report, the worst first
//	statusd fleet                    simulate many nodes in one process
//	statusd alerts                   alerts that are pending, firing or just resolved
//	statusd silence add|list|expire  manage silences of alerts
//	statusd doctor                   report problems of this machine, config, rights and versions
//	statusd completion SHELL         completion for bash, zsh and fish
//	statusd version
//
// As kubectl-statusd it is a plugin of kubectl: kubectl statusd explain POD.
//
// The exit code is 0, or 1 for a failure, 2 for wrong usage, 3 if the pod does not exist, and 4 if no
// statusd can be reached. Command audit exits with 1 if there is drift, and with 5 if no drift was found
// but a side does not answer.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	_ "github.com/statusd/statusd/internal/linuxonly"
	"github.com/statusd/statusd/runtime/process"
)

// errUsage is an error after which the usage helps.
var errUsage = errors.New("statusd --help says how it is used")

func main() {
	if process.IsShim() {
		os.Exit(process.ShimMain())
	}
	if err := command(os.Args[1:], os.Stdout); err != nil {
		if code := exitError(0); errors.As(err, &code) {
			os.Exit(int(code))
		}
		fmt.Fprintln(os.Stderr, "statusd: "+harmless(err.Error()))
		os.Exit(exitCode(err))
	}
}

// The exit codes beside 0.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitUnreachable = 4
	exitUnknown     = 5
	exitNotReady    = 6
)

// exitCodes is how the help explains them.
const exitCodes = `Exit codes:
  0  success; for audit: no drift, and all sides answer
  1  failure; for audit: drift; for explain --watch: the object has failed for good
  2  wrong usage: an unknown flag, output or argument
  3  the pod or silence does not exist
  4  no source: no statusd answers, there is no kubeconfig, or the node has no audit, guard or rules
  5  for audit: no drift is known, but a side does not answer; for nodes and --all-nodes: not all nodes answer
  6  for explain --exit-code, and for explain --watch that was interrupted or timed out: the object is not Ready`

// exitError is an exit code that is an answer: the output has already been printed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func exitCode(err error) int {
	switch {
	case errors.Is(err, errUsage), apierrors.IsBadRequest(err): // a name or a state that cannot be one
		return exitUsage
	case apierrors.IsNotFound(err):
		return exitNotFound
	case errors.Is(err, errUnreachable):
		return exitUnreachable
	}
	return exitFailure
}

// command runs a sub-command. Its result goes to out, its messages to the log.
func command(args []string, out io.Writer) error {
	root := newRoot()
	if isPlugin() {
		root = newPlugin()
	}
	root.SetOut(out)
	root.SetArgs(args)
	return root.Execute()
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "statusd",
		Short:   "statusd is a node of Kubernetes that runs pods as processes and reports their status",
		Example: "  statusd config default > statusd.yaml\n  statusd config check statusd.yaml\n  statusd run --config statusd.yaml",
		Long: "statusd is a node of Kubernetes that runs pods as processes and reports their status. Beside a kubelet it\n" +
			"compares what the API reports with the node.\n\n" + exitCodes,
		Args: usage(cobra.NoArgs),
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
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(), newObserve(), newConfig(), newDrain(), newEnd(), newReset(), newAdopt(), newGet(false), newExplain(false), newHistory(false), newWatch(false),
		newAudit(false), newGuard(false), newNodes(false), newAlerts(false), newSilence(), newRules(), newFleet(), newDoctor(), newVersion())
	return root
}

// newPlugin is the plugin of kubectl: the query commands, without the commands that run a node.
func newPlugin() *cobra.Command {
	root := &cobra.Command{
		Use:           pluginName,
		Short:         "Explain why pods are in their states, since when, and what would change it",
		Long:          "Explain why pods are in their states, since when, and what would change it.\n\n" + exitCodes,
		Example:       "  kubectl statusd explain web\n  kubectl statusd get pods -A -o wide\n  kubectl statusd nodes",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl statusd"},
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newGet(true), newExplain(true), newHistory(true), newWatch(true), newAudit(true), newGuard(true), newNodes(true), newAlerts(true), newVersion())
	return root
}

func flagError(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", err, errUsage) }

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
