package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/statusd/statusd/guard"
)

// ChildOptions configure a [Child]. Command is required.
type ChildOptions struct {
	// Name defaults to the first word of the command.
	Name string
	// Command and its arguments. It must stay in the foreground; what it starts in its process group is stopped with it.
	Command []string
	Dir     string
	// Env is added to the environment of this process.
	Env []string
	// Output gets what the process writes to its standard output and error; nil: nothing does. If it is an *os.File, the
	// process gets it as it is.
	Output io.Writer
	// Grace is how long the process may take to end before it is killed; 10 s if 0.
	Grace time.Duration
}

// Child is a process that the guard starts by a command, as a [guard.Service]. It adopts no process
// that runs already. The process ends with this one: the kernel sends it SIGTERM. It is safe for concurrent use.
type Child struct {
	o ChildOptions
	// patience is how long the end of a process is held back until its last words are written.
	patience time.Duration

	changing sync.Mutex // one start or stop at a time

	mu      sync.Mutex // guards what follows
	run     *run       // nil: never started
	watches map[chan struct{}]bool
}

// run is one process.
type run struct {
	pid     int
	started time.Time
	ended   chan struct{} // closed when the rest is known
	endedAt time.Time
	state   *os.ProcessState
}

// NewChild makes the service of a command. It starts nothing.
func NewChild(o ChildOptions) (*Child, error) {
	if len(o.Command) == 0 {
		return nil, errors.New("service: a child process needs a command")
	}
	if o.Name == "" {
		o.Name = o.Command[0]
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	return &Child{o: o, patience: 5 * time.Second, watches: map[chan struct{}]bool{}}, nil
}

// Name implements [guard.Service].
func (c *Child) Name() string { return c.o.Name }

// State implements [guard.Service].
func (c *Child) State(context.Context) (guard.Process, error) {
	c.mu.Lock()
	r := c.run
	c.mu.Unlock()
	if r == nil {
		return guard.Process{Sure: true}, nil
	}
	select {
	case <-r.ended:
		p := guard.Process{Sure: true, Started: r.started, Ended: r.endedAt}
		status := r.state.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			p.Signal = signalName(int32(status.Signal()))
		} else {
			code := status.ExitStatus()
			p.ExitCode = &code
		}
		return p, nil
	default:
		return look(guard.Process{Exists: true, Sure: true, PID: r.pid, Started: r.started}, "/proc", 0), nil
	}
}

// Start implements [guard.Service].
func (c *Child) Start(ctx context.Context) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.start(ctx)
}

func (c *Child) start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.current() != nil {
		return nil
	}
	r := &run{ended: make(chan struct{})}
	began := make(chan error, 1)
	go c.follow(r, began)
	if err := <-began; err != nil {
		return fmt.Errorf("service: start %s: %w", c.o.Name, err)
	}
	c.mu.Lock()
	c.run = r
	c.mu.Unlock()
	c.changed()
	return nil
}

// current is the process that runs, or nil.
func (c *Child) current() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil {
		return nil
	}
	select {
	case <-c.run.ended:
		return nil
	default:
		return c.run
	}
}

// follow starts a process and waits for its end on one thread: the kernel sends the signal for the death of the
// parent when the thread that started the process ends.
func (c *Child) follow(r *run, began chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(c.o.Command[0], c.o.Command[1:]...)
	cmd.Dir = c.o.Dir
	cmd.Env = append(os.Environ(), c.o.Env...)
	// A process group of its own: Ctrl-C in a terminal is for statusd, which ends it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	output, err := start(cmd, c.o.Output)
	if err != nil {
		began <- err
		return
	}
	r.pid, r.started = cmd.Process.Pid, time.Now()
	began <- nil
	_ = cmd.Wait() // the state says how it ended
	r.endedAt, r.state = time.Now(), cmd.ProcessState
	output.end(c.patience)
	close(r.ended)
	c.changed()
}

// Stop implements [guard.Service]: SIGTERM, and after the grace SIGKILL.
func (c *Child) Stop(ctx context.Context) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.stop(ctx)
}

func (c *Child) stop(ctx context.Context) error {
	r := c.current()
	if r == nil {
		return nil
	}
	// A process that is stopped by SIGSTOP takes a SIGTERM only once it goes on.
	signal(r, syscall.SIGTERM)
	signal(r, syscall.SIGCONT)
	grace := time.NewTimer(c.o.Grace)
	defer grace.Stop()
	look := time.NewTicker(10 * time.Millisecond) // there is no event for the end of a process that is not a child
	defer look.Stop()
	ended := r.ended
	for groupExists(r) {
		select {
		case <-ended:
			ended = nil // what it has started may take the rest of the grace
		case <-look.C:
		case <-grace.C:
			return kill(r)
		case <-ctx.Done():
			return kill(r)
		}
	}
	<-r.ended
	return nil
}

// kill ends the process and what it has started.
func kill(r *run) error {
	signal(r, syscall.SIGKILL)
	<-r.ended // nothing withstands SIGKILL but a process in the kernel, and then another one could not start either
	return nil
}

// signal sends a signal to a process and to what it has started in its group, such as what a shell runs: another one
// could not have its ports while that runs.
func signal(r *run, s syscall.Signal) {
	_ = syscall.Kill(-r.pid, s) // zombies take it too
}

// groupExists reports whether something of the group runs. Its number is that of the process, and is not given to another
// one while there is a member.
func groupExists(r *run) bool { return syscall.Kill(-r.pid, 0) == nil }

// Restart implements [guard.Service].
func (c *Child) Restart(ctx context.Context) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := c.stop(ctx); err != nil {
		return err
	}
	return c.start(ctx)
}

// Watch implements [guard.Watcher].
func (c *Child) Watch(ctx context.Context, changed func()) error {
	news := make(chan struct{}, 1) // one is as good as several
	c.mu.Lock()
	c.watches[news] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.watches, news)
		c.mu.Unlock()
	}()
	for {
		changed()
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		}
	}
}

func (c *Child) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for news := range c.watches {
		select {
		case news <- struct{}{}:
		default:
		}
	}
}
