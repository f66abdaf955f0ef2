package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/unixsocket"
	"github.com/statusd/statusd/runtime"
)

// controlSocket in the state directory takes the commands of statusd drain. Only the owner of the
// directory can reach it.
const controlSocket = "control.sock"

// ErrNotRunning is the error of [Drain] and [Undrain] if no agent uses the state directory.
var ErrNotRunning = errors.New("statusd is not running")

// control serves commands until ctx ends. If it cannot listen, pods run anyway.
func (a *Agent) control(ctx context.Context) error {
	listener, err := unixsocket.Listen(filepath.Join(a.config.StateDir, controlSocket))
	if err != nil {
		a.log.Warn("control socket not available, statusd drain will not work", "err", err)
		<-ctx.Done()
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, request *http.Request) {
		if err := a.shutdown.Drain(request.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "drained: %d pods of this node still run\n", a.runningPods())
	})
	mux.HandleFunc("POST /undrain", func(w http.ResponseWriter, _ *http.Request) {
		a.shutdown.Cancel()
		fmt.Fprintln(w, "the node takes pods again")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("agent: control socket: %w", err)
	case <-ctx.Done():
	}
	err = server.Close()
	<-served
	return err
}

// runningPods counts the pods with running containers.
func (a *Agent) runningPods() (running int) {
	found, err := a.runtime.Pods(context.Background())
	if err != nil {
		a.log.Error("list pods of the runtime failed", "err", err)
	}
	for _, pod := range found {
		if slices.ContainsFunc(pod.Containers, func(c runtime.Container) bool { return c.State != runtime.Exited }) {
			running++
		}
	}
	return running
}

// Drain makes the agent that uses the state directory of this config end its pods as for a shutdown
// of the machine, and returns the agent's answer when the pods have ended. The node stays not ready
// until [Undrain] or a restart of the agent.
func Drain(ctx context.Context, config Config) (string, error) { return command(ctx, config, "drain") }

// Undrain makes a drained node accept pods again and restarts its static pods.
func Undrain(ctx context.Context, config Config) (string, error) {
	return command(ctx, config, "undrain")
}

// Running reports whether an agent uses the state directory of this config.
func Running(ctx context.Context, config Config) bool {
	_, err := command(ctx, config, "running") // an agent answers that the command is unknown
	return !errors.Is(err, ErrNotRunning)
}

// command sends one command to the control socket.
func command(ctx context.Context, config Config, name string) (string, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return unixsocket.Dial(ctx, filepath.Join(config.StateDir, controlSocket))
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://statusd/"+name, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return "", fmt.Errorf("agent: %s: %w with state directory %s", name, ErrNotRunning, config.StateDir)
	}
	if err != nil {
		return "", fmt.Errorf("agent: %s: %w", name, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(answer)))
	}
	if err != nil {
		return "", fmt.Errorf("agent: %s: %w", name, err)
	}
	return strings.TrimSpace(string(answer)), nil
}
