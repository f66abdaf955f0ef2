package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/child"
	"github.com/statusd/statusd/test/controlplane"
)

// daemon is a statusd that runs as a child of this process.
type daemon struct {
	config  run.Config
	logFile string
	*child.Process
}

// startStatusd writes the config beside the state and runs statusd with it.
func (d *demo) startStatusd(config run.Config) (*daemon, error) {
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	return d.startWith(config, text)
}

// startWith does the same with a text of the config, for a statusd that does not have all of the settings.
func (d *demo) startWith(config run.Config, text []byte) (*daemon, error) {
	if err := os.MkdirAll(config.StateDir, 0o711); err != nil {
		return nil, err
	}
	file := config.StateDir + ".yaml"
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(config.StateDir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // statusd has it from then on
	d.say("starting %s run --config %s", d.statusd, file)
	cmd := exec.Command(d.statusd, "run", "--config", file)
	cmd.Stderr = log
	process, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return nil, fmt.Errorf("start statusd: %w; make build makes it", err)
	}
	return &daemon{config: config, logFile: log.Name(), Process: process}, nil
}

// failure is what to say when statusd has ended by itself.
func (d *daemon) failure() error {
	return fmt.Errorf("statusd ended by itself (%v); the end of %s:\n%s", d.Err(), d.logFile, d.logTail())
}

func (d *daemon) logTail() string {
	log, _ := os.ReadFile(d.logFile)
	return controlplane.Tail(string(log), 10)
}

// await tries until it succeeds, statusd ends, or ctx does.
func (d *daemon) await(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-d.Exited:
			cancel(d.failure())
		case <-ctx.Done():
		}
	}()
	return campaign.Await(ctx, lookEvery, try)
}

// stopStatusd stops statusd, and then the containers, which it leaves running.
func (d *demo) stopStatusd(ctx context.Context, daemon *daemon) error {
	d.say("\nstopping statusd")
	problem := daemon.stop(context.WithoutCancel(ctx))
	ending, cancelEnding := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancelEnding()
	ended, err := endContainers(ending, &daemon.config)
	d.say("ended %d containers", ended)
	return errors.Join(problem, err)
}

// stop ends statusd and leaves its containers running.
func (d *daemon) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	d.Signal(syscall.SIGTERM)
	select {
	case <-d.Exited:
		return nil
	case <-ctx.Done():
		d.Kill()
		return errors.New("statusd did not stop in time and was killed")
	}
}

// endContainers ends what statusd has left running.
func endContainers(ctx context.Context, config *run.Config) (ended int, err error) {
	rt, err := process.New(process.Options{Dir: config.RuntimeDir()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	return agent.EndContainers(ctx, rt, 2*time.Second)
}
