package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/statusd/statusd/agent"
)

// daemonOf is what a daemon with a config of some type needs to be started, and started again when the config
// is reloaded.
type daemonOf[C any] struct {
	load     func() (C, error)
	validate func(C) error
	// check reports whether a reloaded config can be used.
	check  func(C) error
	logger func(C) *slog.Logger
	// follows reports that a daemon follows by itself everything that a reload without changes of the config could be for,
	// such as the files that the config names: it is not started again then.
	follows bool
	// start makes a daemon and returns how to run it; nil: ctx has ended meanwhile. The daemon calls reload when
	// it needs to be made again.
	start func(ctx context.Context, config C, supervisor agent.Supervisor, log *slog.Logger, reload func()) (run func(context.Context) error, err error)
}

// keepRunning runs a daemon. The first SIGTERM or SIGINT stops it in order, the second at once. SIGHUP
// stops it in order and starts it with the config as it is then.
func keepRunning[C any](d daemonOf[C]) error {
	config, err := d.load()
	if err != nil {
		return err
	}
	saveMemory()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // from then on a signal has its usual effect
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	supervisor := agent.SupervisorFromEnvironment()
	for {
		next, err := d.once(ctx, config, supervisor, hangups)
		if err != nil || next == nil {
			return err
		}
		config = *next
	}
}

// once runs a daemon until ctx ends, or until a reload with a good config, which it returns.
func (d daemonOf[C]) once(ctx context.Context, config C, supervisor agent.Supervisor, hangups <-chan os.Signal) (*C, error) {
	if err := d.validate(config); err != nil {
		return nil, err
	}
	log := d.logger(config)
	klog.SetSlogLogger(log)          // what client-go says, in the same form
	wanted := make(chan struct{}, 1) // one wish to reload is as good as several
	run, err := d.start(ctx, config, supervisor, log, func() {
		select {
		case wanted <- struct{}{}:
		default:
		}
	})
	if err != nil || run == nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next *C
	reloading := make(chan struct{})
	go func() {
		defer close(reloading)
		next = d.awaitReload(ctx, config, log, hangups, wanted, supervisor.Reloaded)
		if next != nil {
			cancel(agent.ErrReload)
		}
	}()
	err = run(ctx)
	cancel(nil)
	<-reloading
	return next, err
}

// awaitReload waits for a hangup or a request of the daemon, and loads the config. An invalid config is logged, and the
// daemon continues with its current one. A daemon that is being stopped is not reloaded, even if the reload was requested
// first.
func (d daemonOf[C]) awaitReload(ctx context.Context, config C, log *slog.Logger, hangups <-chan os.Signal, wanted <-chan struct{}, reloaded func() error) *C {
	for {
		asked := false // by the daemon
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
		case <-wanted:
			asked = true
		}
		next, err := d.load()
		if err == nil {
			err = d.check(next)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			log.Error("config not reloaded, the old one stays in force", "err", err)
			continue
		}
		if d.follows && !asked && reflect.DeepEqual(config, next) {
			log.Info("config unchanged; credentials, certificates and rules are followed without a reload")
			if err := reloaded(); err != nil {
				log.Warn("sd_notify failed", "err", err)
			}
			continue
		}
		log.Info("reloading the config")
		return &next
	}
}
