package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/shutdown"
)

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run as a node, until SIGTERM or SIGINT; SIGHUP reloads the config",
		Args:  usage(cobra.NoArgs),
	}
	settings := addSettings(cmd)
	cmd.RunE = func(*cobra.Command, []string) error { return run(settings.config) }
	return cmd
}

// run is the daemon. The first SIGTERM or SIGINT stops it in order, the second at once. SIGHUP
// stops it in order and starts it with the config as it is then; containers do not notice.
func run(load func() (agent.Config, error)) error {
	config, err := load()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // from then on a signal has its usual effect
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	supervisor := agent.SupervisorFromEnvironment()
	for {
		next, err := runOnce(ctx, config, supervisor, hangups, load)
		if err != nil || next == nil {
			return err
		}
		config = *next
	}
}

// runOnce runs an agent until ctx ends, or until a reload with a good config, which it returns.
func runOnce(ctx context.Context, config agent.Config, supervisor agent.Supervisor, hangups <-chan os.Signal, load func() (agent.Config, error)) (*agent.Config, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	log := config.Log.Logger(os.Stderr)
	klog.SetSlogLogger(log)          // what client-go says, in the same form
	wanted := make(chan struct{}, 1) // one wish to reload is as good as several
	options := agent.Options{
		NewRuntime: newRuntime(config), Version: version(), Logger: log, Supervisor: supervisor, Host: &shutdown.Logind{},
		Reload: func() {
			select {
			case wanted <- struct{}{}:
			default:
			}
		},
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next *agent.Config
	reloading := make(chan struct{})
	go func() {
		defer close(reloading)
		next = awaitReload(ctx, log, hangups, wanted, load)
		if next != nil {
			cancel(agent.ErrReload)
		}
	}()
	err = a.Run(ctx)
	cancel(nil)
	<-reloading
	return next, err
}

// awaitReload waits for a hangup, or a wish of the agent, after which there is a good config. A bad one is logged, and the
// agent runs on with the one that it has.
func awaitReload(ctx context.Context, log *slog.Logger, hangups <-chan os.Signal, wanted <-chan struct{}, load func() (agent.Config, error)) *agent.Config {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
		case <-wanted:
		}
		next, err := load()
		if err == nil {
			err = agent.CheckConfig(next)
		}
		if err != nil {
			log.Error("config not reloaded, the old one stays in force", "err", err)
			continue
		}
		log.Info("reloading the config")
		return &next
	}
}
