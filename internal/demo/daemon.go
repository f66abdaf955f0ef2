package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/controlplane"
	"github.com/statusd/statusd/runtime/process"
)

// daemon is a statusd that runs as a child of this process.
type daemon struct {
	config  agent.Config
	logFile string
	process *os.Process
	exited  chan struct{} // closed when it is gone
	err     error         // how it ended; read it after exited
}

// startStatusd writes the config beside the state and runs statusd with it.
func (d *demo) startStatusd(config agent.Config) (*daemon, error) {
	if err := os.MkdirAll(config.StateDir, 0o711); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(config)
	if err != nil {
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
	// A Ctrl-C on the terminal is for this process, which then stops statusd; and should
	// this process be killed, statusd goes too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	daemon := &daemon{config: config, logFile: log.Name(), exited: make(chan struct{})}
	if err := daemon.start(cmd); err != nil {
		return nil, fmt.Errorf("start statusd: %w; make build makes it", err)
	}
	return daemon, nil
}

// start runs the command on a thread of its own, which stays: the kernel sends the signal
// for the death of the parent when the thread that started the child ends.
func (d *daemon) start(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		err := cmd.Start()
		d.process = cmd.Process
		started <- err
		if err == nil {
			d.err = cmd.Wait()
			close(d.exited)
		}
	}()
	return <-started
}

// failure is what to say when statusd has ended by itself.
func (d *daemon) failure() error {
	return fmt.Errorf("statusd ended by itself (%v); the end of %s:\n%s", d.err, d.logFile, d.logTail())
}

func (d *daemon) logTail() string {
	log, _ := os.ReadFile(d.logFile)
	return controlplane.Tail(string(log), 10)
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
	// The one error that one's own child can cause is that it has ended, and exited shows that.
	_ = d.process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
		return nil
	case <-ctx.Done():
		_ = d.process.Kill()
		<-d.exited
		return errors.New("statusd did not stop in time and was killed")
	}
}

// endContainers ends what statusd has left running.
func endContainers(ctx context.Context, config *agent.Config) (ended int, err error) {
	rt, err := process.New(process.Options{Dir: config.RuntimeDir()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	return agent.EndContainers(ctx, rt, 2*time.Second)
}
