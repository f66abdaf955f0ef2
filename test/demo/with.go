package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// with runs a command on the node of the demo, and ends with its error. The command finds the cluster by
// KUBECONFIG and the programs of this repository on its PATH.
func (d *demo) with(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return errors.New("with: which command? demo with COMMAND [ARGUMENT...]")
	}
	binaries, err := filepath.Abs(filepath.Dir(d.statusd))
	if err != nil {
		return err
	}
	return d.inCluster(ctx, nil, func(r running) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() { // a command that waits for a node that has ended would wait until its own deadline
			select {
			case <-r.daemon.Exited:
				cancel(r.daemon.failure())
			case <-r.server.Exited():
				cancel(fmt.Errorf("the control plane ended by itself; see controlplane.log in %s", d.state))
			case <-ctx.Done():
			}
		}()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stopTimeout
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, d.out, os.Stderr
		cmd.Env = append(os.Environ(),
			"KUBECONFIG="+r.server.AdminKubeconfig(),
			"PATH="+binaries+string(filepath.ListSeparator)+os.Getenv("PATH"))
		err := cmd.Run()
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
		return nil
	})
}
