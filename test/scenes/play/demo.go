package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/statusd/statusd/test/scenes"
	"github.com/statusd/statusd/test/stock"
)

// demonstration is a demo in progress.
type demonstration struct {
	options
	stage *scenes.Stage
}

// demo freezes the kubelet, kills a container, and lets it go on.
func demo(ctx context.Context, o options, stage *scenes.Stage) error {
	d := demonstration{o, stage}
	fmt.Println("creating pods web, db and cache")
	if err := stage.Pods(ctx, "web", "db", "cache"); err != nil {
		return err
	}
	if err := stage.Calm(ctx); err != nil {
		return err
	}
	fmt.Printf("\nthe page is at http://%s/\n", stage.Observer.Address)
	if err := d.audit(ctx, 0); err != nil {
		return err
	}

	fmt.Printf("\nthe kubelet (process %d) is frozen, and the container of pod web is killed\n", stage.Node.Kubelet.Process().PID())
	if err := stage.Node.Kubelet.Process().Pause(ctx); err != nil {
		return err
	}
	if err := stage.KillContainer(ctx, "web"); err != nil {
		return err
	}
	begin := time.Now()
	if err := stock.Await(ctx, func() error { return d.page(ctx, true) }); err != nil {
		return err
	}
	fmt.Printf("%.1f s later, the page says so; kubectl still says that web is Running and Ready\n", time.Since(begin).Seconds())
	if err := d.audit(ctx, 1); err != nil {
		return err
	}
	if err := d.audit(ctx, 1, "default/web"); err != nil {
		return err
	}

	fmt.Println("\nthe kubelet goes on")
	begin = time.Now()
	stage.Node.Kubelet.Process().Resume()
	if err := stock.Await(ctx, func() error { return d.page(ctx, false) }); err != nil {
		return err
	}
	if err := stage.Calm(ctx); err != nil {
		return err
	}
	fmt.Printf("%.1f s later, all sides agree again\n", time.Since(begin).Seconds())
	if err := d.audit(ctx, 0); err != nil {
		return err
	}
	if o.stay {
		fmt.Println("\neverything runs on until Ctrl-C")
		<-ctx.Done()
	}
	return nil
}

// page returns nil if what the page reads of pod web has drift, or has none.
func (d *demonstration) page(ctx context.Context, want bool) error {
	pod, err := d.stage.Observer.Client().Pod(ctx, "default", "web")
	if err != nil {
		return err
	}
	for _, difference := range pod.Differences {
		if difference.Drift {
			if want {
				return nil
			}
			return fmt.Errorf("the page still has drift: %s", difference.Message)
		}
	}
	if want {
		return errors.New("the page has no drift")
	}
	return nil
}

// audit runs statusd audit and shows its output. Its exit code must be the given one.
func (d *demonstration) audit(ctx context.Context, code int, args ...string) error {
	args = append([]string{"audit", "--socket", d.stage.Observer.Socket}, args...)
	fmt.Printf("\n$ statusd %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.program, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	fmt.Print(output.String())
	if got := cmd.ProcessState.ExitCode(); got != code {
		return errors.Join(fmt.Errorf("statusd audit exits with %d, want %d", got, code), err)
	}
	fmt.Printf("(exit code %d)\n", code)
	return nil
}
