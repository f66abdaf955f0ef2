package controlplane

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/statusd/statusd/test/child"
)

// run is one run of the binary.
type run struct {
	*child.Process
	ready  chan struct{} // closed when the server has said that it is ready
	stderr *bytes.Buffer // what it said; read it after Exited
}

func startRun(binary string, args ...string) (*run, error) {
	r := &run{ready: make(chan struct{}), stderr: &bytes.Buffer{}}
	cmd := exec.Command(binary, args...)
	cmd.Stdout = &firstLine{complete: sync.OnceFunc(func() { close(r.ready) })}
	cmd.Stderr = r.stderr
	var err error
	if r.Process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *run) wasReady() bool {
	select {
	case <-r.ready:
		return true
	default:
		return false
	}
}

// reason says how the process ended, in its own words if it had any.
func (r *run) reason() string {
	if said := strings.TrimSpace(r.stderr.String()); said != "" {
		return strings.TrimPrefix(said, "controlplane: ")
	}
	if r.Err() == nil {
		return "exit status 0"
	}
	return r.Err().Error()
}

// firstLine calls complete when a first whole line has been written: the server says exactly one
// line on standard output, when it is ready. Written to by one goroutine.
type firstLine struct{ complete func() }

func (l *firstLine) Write(p []byte) (int, error) {
	if bytes.ContainsRune(p, '\n') {
		l.complete()
	}
	return len(p), nil
}
