package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/internal/scenes"
)

func main() {
	program := flag.String("statusd", "bin/statusd", "the statusd to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *program); err != nil {
		fmt.Fprintln(os.Stderr, "guarddemo:", err)
		os.Exit(1)
	}
}

// run sets the stage, plays all scenarios and prints their table.
func run(ctx context.Context, program string) (err error) {
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	fmt.Println("starting an API server, containerd and a stock kubelet")
	stage, err := scenes.NewStage(ctx, scenes.StageOptions{Program: program, Roles: []string{"guard.yaml"}, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()

	observer, err := stage.Guard(ctx, policy)
	if err != nil {
		return err
	}
	defer observer.Close()
	client, err := api.NewClient("http://" + observer.Address)
	if err != nil {
		return err
	}
	defer client.Close()
	p := &play{stage: stage, program: program, socket: observer.Socket, client: client}
	fmt.Printf("statusd observe runs the kubelet; the page is at http://%s/\n", observer.Address)
	if err := p.all(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, stage.Node.Tail(20))
	}
	return nil
}

// policy lets the demonstration restart the kubelet often.
const policy = `  restartsPerHour: 20
  firstPause: 5s
  lastPause: 10s
  coolDown: 10s
`
