// Package child runs a program that does not outlive this one.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// A Process is a child that runs or has ended.
type Process struct {
	// Exited is closed when the process is gone and collected.
	Exited chan struct{}
	cmd    *exec.Cmd
	err    error
}

// Start runs the command in a process group of its own: a Ctrl-C on the terminal is for this program, which ends the child
// in its own time. When this program ends, the kernel sends the child the signal. Other attributes of the command are kept.
//
// The goroutine that starts the child keeps its thread until the child ends: the kernel sends the signal when the thread that
// started the child ends, and a thread of Go's may end long before the program does.
func Start(cmd *exec.Cmd, atDeath syscall.Signal) (*Process, error) {
	p := &Process{Exited: make(chan struct{}), cmd: cmd}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, atDeath
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.Exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the process a signal. The one error that a program's own child can cause is that the child has ended, which
// Exited shows.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends the process and returns when it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Exited
}

// HasExited reports whether the process is gone.
func (p *Process) HasExited() bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}

// Err is how the process ended; call it after Exited.
func (p *Process) Err() error { return p.err }
