package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// shimEnvironment keeps a process small that mostly waits. A program that was built with
// the race detector would sleep for a second before it ends, and an exit be seen late.
var shimEnvironment = []string{"GOMAXPROCS=1", "GOGC=20", "GORACE=atexit_sleep_ms=0"}

// keptAttempts is how many attempts of a container are remembered: the current one and
// the one before, which the pod's status shows as last state.
const keptAttempts = 2

// StartContainer implements [runtime.Runtime].
func (r *Runtime) StartContainer(ctx context.Context, manifest *v1.Pod, spec *v1.Container, attempt int) (string, error) {
	p, err := r.mayStart(manifest, spec.Name, attempt)
	if err != nil {
		return "", fmt.Errorf("process: start container %s: %w", spec.Name, err)
	}
	c, err := r.prepare(ctx, p, manifest, spec, attempt)
	if err != nil {
		return "", fmt.Errorf("process: start container %s: %w", spec.Name, err)
	}
	if err := r.launch(ctx, p, c); err != nil {
		return r.listedID(c), fmt.Errorf("process: start container %s: %w", spec.Name, err)
	}
	r.prune(p, spec.Name)
	return c.spec.ID, nil
}

// mayStart makes sure that there is a place for the container and that nothing runs in it.
func (r *Runtime) mayStart(manifest *v1.Pod, name string, attempt int) (*pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.pods[manifest.UID]
	if !known {
		return nil, fmt.Errorf("pod %s: %w", manifest.UID, runtime.ErrNotFound)
	}
	for _, c := range p.containers {
		if c.spec.Name != name {
			continue
		}
		if c.view.State != runtime.Exited {
			return nil, fmt.Errorf("attempt %d: %w", c.spec.Attempt, runtime.ErrContainerRunning)
		}
		if c.spec.Attempt >= attempt {
			return nil, fmt.Errorf("attempt %d was already made, attempt %d comes too late", c.spec.Attempt, attempt)
		}
	}
	return p, nil
}

// prepare makes the container's directory with all that a shim needs to know.
func (r *Runtime) prepare(ctx context.Context, p *pod, manifest *v1.Pod, target *v1.Container, attempt int) (*container, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	dir := p.dir.container(id)
	spec, err := r.resolve(ctx, p, dir, manifest, target)
	if err != nil {
		return nil, &runtime.StartError{Reason: runtime.WaitingConfigError, Err: err}
	}
	spec.ID, spec.Attempt, spec.CreatedAt, spec.Boot = id, attempt, time.Now(), r.boot
	if spec.Cgroup, err = r.enterGroups(manifest, target, id); err != nil {
		return nil, &runtime.StartError{Reason: runtime.WaitingCreateError, Err: err}
	}
	if err := writeContainer(dir, spec); err != nil {
		return nil, errors.Join(&runtime.StartError{Reason: runtime.WaitingCreateError, Err: err}, r.cleaner.delete(string(dir.Dir)), cgroup.Remove(spec.Cgroup))
	}
	return newContainer(manifest.UID, dir, spec), nil
}

func newID() (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return Scheme + hex.EncodeToString(random[:]), nil
}

func writeContainer(dir containerDir, spec record.Spec) error {
	if err := makeDir(string(dir.Dir), traversable); err != nil {
		return err
	}
	// The records below are durable only if the directory is.
	if err := record.SyncDir(filepath.Dir(string(dir.Dir))); err != nil {
		return err
	}
	if err := makeDir(dir.Logs(), private); err != nil {
		return err
	}
	if err := os.WriteFile(dir.TerminationLog(), nil, 0o600); err != nil {
		return err
	}
	if user := spec.User; user != nil {
		if err := os.Chown(dir.TerminationLog(), int(user.UID), int(user.GID)); err != nil {
			return err
		}
	}
	return record.WriteDurably(dir.Spec(), spec)
}

// launch starts the shim, remembers it, lets it go, and waits until the container has
// started or failed to.
func (r *Runtime) launch(ctx context.Context, p *pod, c *container) error {
	if err := r.startShim(p, c); err != nil {
		r.removeCgroups(c)
		return errors.Join(&runtime.StartError{Reason: runtime.WaitingCreateError, Err: err}, c.dir.Discard())
	}
	if err := r.awaitStart(ctx, c); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.view.State == runtime.Exited && c.view.Reason == runtime.ReasonStartError {
		return &runtime.StartError{Reason: runtime.WaitingRunError, Err: errors.New(c.view.Message)}
	}
	return nil
}

// startShim returns when the shim has its go. Until then it would end without a trace,
// should we die; from then on it is listed, whatever happens to it.
func (r *Runtime) startShim(p *pod, c *container) (err error) {
	ours, theirs, err := control.Pair()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			unix.Close(ours) // a shim that was started gives up
		}
	}()
	pid, pidfd, err := r.spawn(c, theirs)
	if err != nil {
		return fmt.Errorf("start shim: %w", err)
	}
	id, err := proc.Identify(pid)
	if err == nil {
		err = record.Write(c.dir.Shim(), id)
	}
	if addErr := r.exits.add(pidfd, c); err != nil || addErr != nil {
		return errors.Join(err, addErr)
	}
	if err := control.Send(ours, control.Request{Go: c.spec.ID}); err != nil {
		return fmt.Errorf("shim did not wait for its go: %w", err)
	}
	r.exits.hold(ours, c)
	r.mu.Lock()
	p.containers = append(p.containers, c)
	r.mu.Unlock()
	r.Notify(c.uid)
	return nil
}

// spawn starts the shim of a container. spawn closes the shim's end of the connection.
func (r *Runtime) spawn(c *container, theirs int) (pid, pidfd int, err error) {
	end := os.NewFile(uintptr(theirs), "shim control")
	defer end.Close()
	program, arguments := r.options.shimCommand(c.spec.ID)
	process, err := r.spawnShim(c.dir, shimProgram{path: program, arguments: arguments, files: []*os.File{end}}, &pidfd)
	if err != nil {
		return 0, -1, err
	}
	pid = process.Pid
	return pid, pidfd, process.Release() // Run reaps it, through the pidfd
}

// shimProgram is how a shim is started.
type shimProgram struct {
	path      string
	arguments []string
	variable  string     // in its environment, if not empty
	files     []*os.File // from descriptor 3 on
}

// spawnShim starts a shim in a session of its own, where no terminal and no service
// manager's signal reaches it by accident.
func (r *Runtime) spawnShim(dir containerDir, shim shimProgram, pidfd *int) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	log, err := os.OpenFile(dir.ShimLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if takesNoWrites(err) {
		log, err = null, nil // a shim of a command needs no disk
	}
	if err != nil {
		return nil, err
	}
	defer log.Close() // the second time, if it is null, is an error that does not matter
	env := shimEnvironment
	if shim.variable != "" {
		env = append(slices.Clone(env), shim.variable)
	}
	process, err := os.StartProcess(shim.path, shim.arguments, &os.ProcAttr{
		Dir:   string(dir.Dir),
		Env:   env,
		Files: append([]*os.File{null, null, log}, shim.files...),
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: pidfd},
	})
	if err != nil {
		return nil, err
	}
	r.groups.leaveService(process.Pid, r.options.Logger)
	resetOOMScore(process.Pid)
	return process, nil
}

// resetOOMScore makes a shim, and so its container, as likely to be killed for memory as any other
// process: statusd itself may be protected, as by OOMScoreAdjust= of its unit. What cannot be
// written is not set.
func resetOOMScore(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("0"), 0)
}

// listedID is the ID of a container if it is listed, and else empty.
func (r *Runtime) listedID(c *container) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.find(c.spec.ID); err != nil {
		return ""
	}
	return c.spec.ID
}

// prune forgets the attempts of a container that are not needed any more.
func (r *Runtime) prune(p *pod, name string) {
	r.mu.Lock()
	var attempts []*container
	for _, c := range p.containers {
		if c.spec.Name == name {
			attempts = append(attempts, c)
		}
	}
	slices.SortFunc(attempts, func(a, b *container) int { return b.spec.Attempt - a.spec.Attempt })
	old := attempts[min(keptAttempts, len(attempts)):]
	p.containers = slices.DeleteFunc(p.containers, func(c *container) bool { return slices.Contains(old, c) })
	r.mu.Unlock()
	for _, c := range old {
		if err := r.removeDir(string(c.dir.Dir)); err != nil {
			r.options.Logger.Error("removing an old attempt failed", "uid", c.uid, "id", c.spec.ID, "err", err)
		}
		r.letGo(c)
	}
}
