package controlplane

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// child is one run of the binary.
type child struct {
	process *os.Process
	ready   chan struct{} // closed when the server has said that it is ready
	exited  chan struct{} // closed when the process is gone and collected
	err     error         // how it ended; read it after exited
	stderr  *bytes.Buffer // what it said; read it after exited
}

// startChild runs the binary in a goroutine that ends with the process. The goroutine keeps its
// thread all the while: the kernel sends the parent-death signal when the thread that started the
// child ends, and a thread of Go's may end long before the program does.
func startChild(binary string, args ...string) (*child, error) {
	c := &child{ready: make(chan struct{}), exited: make(chan struct{}), stderr: &bytes.Buffer{}}
	cmd := exec.Command(binary, args...)
	// A Ctrl-C on the terminal is for the parent, which ends the child in its own time.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Stdout = &firstLine{complete: sync.OnceFunc(func() { close(c.ready) })}
	cmd.Stderr = c.stderr

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) wasReady() bool { return isClosed(c.ready) }

func (c *child) hasExited() bool { return isClosed(c.exited) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reason says how the process ended, in its own words if it had any.
func (c *child) reason() string {
	if said := strings.TrimSpace(c.stderr.String()); said != "" {
		return strings.TrimPrefix(said, "controlplane: ")
	}
	if c.err == nil {
		return "exit status 0"
	}
	return c.err.Error()
}

func (c *child) terminate() { c.signal(syscall.SIGTERM) }

// kill returns when the process is gone.
func (c *child) kill() {
	c.signal(syscall.SIGKILL)
	<-c.exited
}

func (c *child) signal(s syscall.Signal) {
	// The one error that one's own child can cause is that it has ended, and exited shows that.
	_ = c.process.Signal(s)
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
