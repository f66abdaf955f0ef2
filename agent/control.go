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
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/unixsocket"
	"github.com/statusd/statusd/runtime"
)

// controlSocket in the state directory takes the commands of statusd drain. Only the owner of the
// directory can reach it.
const controlSocket = "control.sock"

// ErrNotRunning is the error of [Drain] and [Undrain] if no agent uses the state directory.
var ErrNotRunning = errors.New("statusd is not running")

// control takes commands until ctx ends. That it cannot listen keeps no pod from running.
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

// runningPods counts the pods of which something still runs.
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

// Drain has the agent that uses the state directory of this config end its pods as for a shutdown
// of the machine, and returns what it says when they have ended. The node stays not ready until
// [Undrain] or a restart of the agent.
func Drain(ctx context.Context, config Config) (string, error) { return command(ctx, config, "drain") }

// Undrain has a drained node take pods again, and its static pods run again.
func Undrain(ctx context.Context, config Config) (string, error) {
	return command(ctx, config, "undrain")
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
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
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
