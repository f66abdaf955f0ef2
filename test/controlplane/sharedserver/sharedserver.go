// Package sharedserver runs the API server that the packages of make test-real share. It imports no client, so that
// starting the tests does not require compiling one first.
package sharedserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/statusd/statusd/test/child"
)

// Variable names the data directory of the server.
const Variable = "STATUSD_CONTROLPLANE"

// A Server runs until Stop.
type Server struct {
	Dir    string // its data, removed by Stop
	run    *child.Process
	stderr strings.Builder // read after the end of the run
}

// Start runs the program and returns when the server is ready.
func Start(ctx context.Context, program string) (*Server, error) {
	dir, err := TempDir("controlplane-shared-*")
	if err != nil {
		return nil, err
	}
	s, cmd := &Server{Dir: dir}, exec.Command(program, "--data-dir", dir, "--port", "0")
	reading, writing := io.Pipe()
	cmd.Stdout, cmd.Stderr = writing, &s.stderr
	if s.run, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, errors.Join(fmt.Errorf("start the shared API server: %w", err), os.RemoveAll(dir))
	}
	ready := make(chan struct{})
	go func() {
		if lines := bufio.NewScanner(reading); lines.Scan() { // its one line says that it is ready
			close(ready)
		}
		_, _ = io.Copy(io.Discard, reading)
	}()
	go func() {
		<-s.run.Exited
		writing.Close()
	}()
	select {
	case <-ready:
		return s, nil
	case <-s.run.Exited:
		err = s.Died()
	case <-ctx.Done():
		err = fmt.Errorf("the shared API server was not ready in time: %w", ctx.Err())
	}
	s.Stop()
	return nil, err
}

// Died returns an error if the server has ended by itself.
func (s *Server) Died() error {
	if !s.run.HasExited() {
		return nil
	}
	return fmt.Errorf("the shared API server ended by itself: %s", s.stderr.String())
}

// Stop kills the server and removes its data.
func (s *Server) Stop() {
	s.run.Kill()
	_ = os.RemoveAll(s.Dir)
}
