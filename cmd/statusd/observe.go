package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/observer"
	"github.com/statusd/statusd/internal/process"
)

func newObserve() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Report whether what the API says about this node is true, beside a kubelet; until SIGTERM or SIGINT",
		Long: "Observe a node with a kubelet: compare what the API server, the kubelet, the container runtime and the machine\n" +
			"know of its pods, and report each difference that lasts. By default nothing is written to the API and nothing is changed.\n" +
			"SIGHUP reloads the config.",
		Example: "  statusd observe --kubeconfig /etc/kubernetes/kubelet.conf\n  statusd observe --events --node-condition\n  statusd observe --repair=ContainerWithoutPod --repair-dry-run",
		Args:    usage(cobra.NoArgs),
	}
	s := addSettings(cmd, observerConfig)
	show := cmd.Flags().Bool("print-config", false, "Print the config that the file and the flags amount to, and end.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if !*show {
			fronts := &process.Fronts{}
			defer func() { err = errors.Join(err, fronts.Close()) }()
			return keepRunning(daemonOf[observer.Config]{
				load: s.config, check: observer.CheckConfig,
				start: func(_ context.Context, config observer.Config, supervisor agent.Supervisor, log *slog.Logger, reload func()) (func(context.Context) error, error) {
					return startObserver(config, observer.Options{Version: version(), Logger: log, Supervisor: supervisor, Reload: reload, Fronts: fronts})
				},
				validate: func(c observer.Config) error { return c.Validate() },
				logger:   func(c observer.Config) *slog.Logger { return c.Log.Logger(os.Stderr) },
			})
		}
		config, err := s.config()
		if err != nil {
			return err
		}
		return config.Write(cmd.OutOrStdout(), "The configuration of statusd observe.")
	}
	return cmd
}

// startObserver makes an observer and returns how to run it.
func startObserver(config observer.Config, options observer.Options) (func(context.Context) error, error) {
	o, err := observer.New(config, options)
	if err != nil {
		return nil, err
	}
	return o.Run, nil
}
