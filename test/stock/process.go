package stock

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/test/campaign"
)

// Process is a program of the node.
type Process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{} // closed when the process has ended
	// began and ended are the times of start and end; ended may be read after exited is closed.
	began, ended time.Time
}

// Launcher starts a program; its output is appended to a file NAME.log.
type Launcher func(name, program string, args ...string) (*Process, error)

// Launch is a launcher's work outside of a node's namespaces.
func Launch(dir string, env []string, name, program string, args ...string) (*Process, error) {
	return start(nil, dir, env, name, program, args...)
}

func start(in *namespaces, dir string, env []string, name, program string, args ...string) (*Process, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if in != nil {
		cmd.Dir = dir // that of this process may not exist there
	}
	p, err := launch(cmd, in)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.log = log.Name()
	return p, nil
}

// PID is the process's number in the namespace of the caller, not in the node's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is the file of its output.
func (p *Process) Log() string { return p.log }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Over reports whether the process has ended.
func (p *Process) Over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Began is when the process was started.
func (p *Process) Began() time.Time { return p.began }

// Ended is how and when the process has ended. Call it only if it is over.
func (p *Process) Ended() (syscall.WaitStatus, time.Time) {
	<-p.exited
	return p.cmd.ProcessState.Sys().(syscall.WaitStatus), p.ended
}

// Kill ends the process as kill -9 does and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // the one error is that it has ended
	<-p.exited
}

// Signal sends a signal; none if the process has ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Pause stops the process where it is, and returns when the kernel has stopped it.
func (p *Process) Pause(ctx context.Context) error {
	p.Signal(syscall.SIGSTOP)
	return Await(ctx, func() error {
		seen, err := hostproc.Read("/proc", p.PID())
		if err != nil {
			return err
		}
		if !seen.Stopped() {
			return fmt.Errorf("process %d is in state %c, not stopped", p.PID(), seen.State)
		}
		return nil
	})
}

// Resume lets a paused process go on.
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

// Await calls try until it succeeds; its error describes the unmet condition.
func Await(ctx context.Context, try func() error) error {
	return campaign.Await(ctx, 100*time.Millisecond, try)
}

func notifyChildren(c chan os.Signal) { signal.Notify(c, syscall.SIGCHLD) }
