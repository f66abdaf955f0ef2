package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/controlplane/binary"
	"github.com/statusd/statusd/test/freeport"
)

// tailLines of the log go into an error: enough to see the cause, few enough to read.
const tailLines = 30

// Build returns the path of the server's binary, built if it is missing or older than its sources.
// It says on w what takes minutes and why.
func Build(ctx context.Context, w io.Writer) (string, error) { return binary.Build(ctx, w) }

// Built reports whether the server's binary is there and not older than its sources.
func Built() bool { return binary.Built() }

// Options says how to start a server.
type Options struct {
	// DataDir holds all that the server keeps. Made if missing; required.
	DataDir string
	// Port on 127.0.0.1. 0: the one of the last start in DataDir, else a free one.
	Port int
	// Controllers starts kube-scheduler and the controllers that meet a node, too.
	Controllers bool
	// NodeMonitorGracePeriod is, with Controllers, how long a node may be silent before it counts as
	// unreachable. 0: the default of kube-controller-manager.
	NodeMonitorGracePeriod time.Duration
	// Log receives what Start has to say while it takes long. nil: nothing is said.
	Log io.Writer
}

func (o Options) args() []string {
	args := []string{"--data-dir", o.DataDir, "--port", strconv.Itoa(o.Port)}
	if o.Controllers {
		args = append(args, "--controllers")
	}
	if o.NodeMonitorGracePeriod > 0 {
		args = append(args, "--node-monitor-grace-period", o.NodeMonitorGracePeriod.String())
	}
	return args
}

// Process is a server in a child process. It exists until Stop or Kill, and again after Restart.
type Process struct {
	binary  string
	options Options
	held    net.Listener // holds the port, and is closed with this program; nil: nothing holds it
	claims  string       // directory of the node names of the programs that share the server; empty: not shared

	mu    sync.Mutex // guards what follows; held while the server starts or ends
	child *run       // nil: not running
	admin *rest.Config
	nodes map[string]*rest.Config
}

// Start builds the binary if needed, starts a server and returns when it is ready. If the server does
// not get ready the error has its output and the end of its log, and nothing is left running.
func Start(ctx context.Context, o Options) (*Process, error) {
	if o.DataDir == "" {
		return nil, errors.New("control plane: a data directory is required")
	}
	dataDir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	o.DataDir = dataDir
	if o.Log == nil {
		o.Log = io.Discard
	}
	path, err := Build(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	p := &Process{binary: path, options: o, nodes: map[string]*rest.Config{}}
	if err := p.holdPort(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	if p.admin, err = loadConfig(p.AdminKubeconfig()); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// Attach returns a server that another program has started with its data in the directory, and ends. Its methods that start
// and end a server do nothing good here. Node names belong to the program that asks first.
func Attach(ctx context.Context, dataDir string) (*Process, error) {
	path, err := Build(ctx, io.Discard)
	if err != nil {
		return nil, err
	}
	p := &Process{binary: path, options: Options{DataDir: dataDir}, nodes: map[string]*rest.Config{}, claims: filepath.Join(dataDir, "claims")}
	if p.admin, err = loadConfig(p.AdminKubeconfig()); err != nil {
		return nil, err
	}
	return p, os.MkdirAll(p.claims, 0o755)
}

// holdPort chooses the port of a data directory that was not served before. While this program runs, no other server of
// this machine whose port was chosen that way gets it, also while this one is down; nor does this one get theirs.
func (p *Process) holdPort() (err error) {
	if p.options.Port != 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(p.options.DataDir, "port")); !errors.Is(err, os.ErrNotExist) {
		return nil // the server finds it there, or says why it cannot
	}
	if p.options.Port, p.held, err = freeport.Take(); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	return nil
}

// start is called with the lock held and no child running.
func (p *Process) start(ctx context.Context) error {
	logged := len(p.Log())
	c, err := startRun(p.binary, p.options.args()...)
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	select {
	case <-c.ready:
		p.child = c
		return nil
	case <-c.Exited:
		if c.wasReady() { // then both channels were closed, and select took one at random
			p.child = c
			return nil
		}
		err = fmt.Errorf("ended before it was ready: %s", c.reason())
	case <-ctx.Done():
		c.Kill()
		err = fmt.Errorf("not ready in time: %w", ctx.Err())
	}
	if log := Tail(p.Log()[logged:], tailLines); log != "" {
		err = fmt.Errorf("%w\nend of its log:\n%s", err, log)
	}
	return fmt.Errorf("control plane: %w", err)
}

// Kill ends the server as kill -9 does and returns when it is gone. No-op if it is not running.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kill()
}

func (p *Process) kill() error {
	if p.child == nil {
		return nil
	}
	c := p.child
	p.child = nil
	if c.HasExited() {
		return fmt.Errorf("control plane: ended by itself: %s", c.reason())
	}
	c.Kill()
	return nil
}

// Freeze stops the server by a signal: its connections stay open, and nothing is answered until Thaw. No-op if it is not running.
func (p *Process) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw continues a server after Freeze.
func (p *Process) Thaw() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child != nil && !p.child.HasExited() {
		p.child.Signal(s)
	}
}

// Stop asks the server to end and returns when it is gone. If ctx ends first the server is killed
// and that is an error, as it is if the server failed or had ended by itself. No-op if it is not running.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop(ctx)
}

func (p *Process) stop(ctx context.Context) error {
	if p.child == nil {
		return nil
	}
	c := p.child
	p.child = nil
	if c.HasExited() {
		return fmt.Errorf("control plane: ended by itself: %s", c.reason())
	}
	c.Signal(syscall.SIGTERM)
	select {
	case <-c.Exited:
	case <-ctx.Done():
		c.Kill()
		return fmt.Errorf("control plane: killed, because it did not stop in time: %w", ctx.Err())
	}
	if c.Err() != nil {
		return fmt.Errorf("control plane: did not stop cleanly: %s", c.reason())
	}
	return nil
}

// Restart starts the server again on the same data and at the same address, and stops it first if
// it runs. Clients made before work on.
func (p *Process) Restart(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stop(ctx); err != nil {
		return err
	}
	return p.start(ctx)
}

// Exited is closed when the server is not running: it was stopped, killed, or ended by itself. A
// restart makes a new channel.
func (p *Process) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	return p.child.Exited
}

// Address is where the server listens, as in https://127.0.0.1:6443.
func (p *Process) Address() string { return p.admin.Host }

// DataDir is the directory with all that the server keeps, absolute.
func (p *Process) DataDir() string { return p.options.DataDir }

// Log is all that the server has logged in its data directory, over all its starts.
func (p *Process) Log() string {
	content, err := os.ReadFile(filepath.Join(p.options.DataDir, "controlplane.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Sprintf("the log of the control plane cannot be read: %v\n", err)
	}
	return string(content)
}

// Tail is the last n lines of a log, each cut to a length that a person reads.
func Tail(log string, n int) string {
	const width = 400
	lines := strings.SplitAfter(log, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	for i, line := range lines {
		if len(line) > width {
			lines[i] = line[:width] + "…\n"
		}
	}
	return strings.Join(lines, "")
}
