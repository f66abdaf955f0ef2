package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

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

	// From here on the guard runs the kubelet.
	stage.Node.Kubelet.Process().Kill()
	observer, err := stage.Another(ctx, "guard", "", settings(stage))
	if err != nil {
		return err
	}
	defer observer.Close()
	p := &play{stage: stage, program: program, socket: observer.Socket, address: observer.Address, client: observer.Client()}
	fmt.Printf("statusd observe runs the kubelet; the page is at http://%s/\n", observer.Address)
	if err := p.all(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, stage.Node.Tail(20))
	}
	return nil
}

// settings are the section guard of the observer.
func settings(stage *scenes.Stage) string {
	var command strings.Builder
	for _, word := range stage.Node.Kubelet.Command() {
		fmt.Fprintf(&command, "\n    - %q", word)
	}
	return fmt.Sprintf(`guard:
  enabled: true
  unit: ""
  runtimeUnit: ""
  command:%s
  healthzURL: http://127.0.0.1:%d/healthz
  restart: true
  restartsPerHour: 20
  firstPause: 5s
  lastPause: 10s
  coolDown: 10s
  nodeCondition: true
  events: true
`, command.String(), stage.Node.Kubelet.HealthzPort)
}
