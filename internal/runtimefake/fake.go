package runtimefake

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/runtimememory"
	"github.com/statusd/statusd/runtime"
)

// Runtime is the fake.
type Runtime struct {
	runtime.Changes

	mu      sync.Mutex // guards all below
	scripts scripts
	errors  map[string][]error
	calls   []string
	started int
	pods    runtimememory.Table[*container]
	skew    time.Duration // of the clock by which times are recorded
}

var _ runtime.Runtime = (*Runtime)(nil)

type container struct {
	runtime.Container
	uid       types.UID
	resources v1.ResourceRequirements
	behavior  Behavior
	stop      *time.Timer // set once a stop was asked for
	deadline  time.Time   // when stop fires
	log       runtimememory.Log
}

// View implements [runtimememory.Attempt].
func (c *container) View() *runtime.Container { return &c.Container }

// New returns a fake without pods.
func New() *Runtime {
	return &Runtime{errors: map[string][]error{}, pods: runtimememory.NewTable[*container]("runtimefake")}
}

// Version is always the same.
func (r *Runtime) Version() string { return "fake://v0" }

// Check returns the result of the script of [Runtime.RejectWith].
func (r *Runtime) Check(pod *v1.Pod) []runtime.Unsupported {
	r.mu.Lock()
	reject := r.scripts.reject
	r.mu.Unlock()
	if reject == nil {
		return nil
	}
	return reject(pod)
}

// StartPod gives the pod an address of its own.
func (r *Runtime) StartPod(_ context.Context, manifest *v1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("StartPod", manifest.Name); err != nil {
		return err
	}
	if _, known := r.pods.Pods[manifest.UID]; known {
		return nil
	}
	r.pods.Pods[manifest.UID] = &runtimememory.Pod[*container]{Pod: runtime.Pod{
		Manifest:  manifest.DeepCopy(),
		IPs:       []string{fmt.Sprintf("10.0.0.%d", len(r.pods.Pods)+1)},
		CreatedAt: time.Now(), PlaceSince: time.Now(),
	}}
	r.Notify(manifest.UID)
	return nil
}

// StartContainer calls the script for the behavior of the container.
func (r *Runtime) StartContainer(_ context.Context, manifest *v1.Pod, spec *v1.Container, attempt int) (string, error) {
	r.mu.Lock()
	script := r.scripts.start
	r.mu.Unlock()
	var behavior Behavior
	if script != nil {
		behavior = script(manifest, spec, attempt)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("StartContainer", fmt.Sprintf("%s/%s/%d", manifest.Name, spec.Name, attempt)); err != nil {
		return "", err
	}
	p, err := r.pods.MayStart(manifest.UID, spec.Name, attempt)
	if err != nil {
		return "", err
	}
	if behavior.StartError != nil && !behavior.Listed {
		return "", behavior.StartError
	}
	r.started++
	c := &container{uid: manifest.UID, resources: *spec.Resources.DeepCopy(), behavior: behavior, Container: runtime.Container{
		ID: fmt.Sprintf("fake://%d", r.started), Name: spec.Name, Attempt: attempt,
		State: runtime.Created, CreatedAt: r.now(), Image: spec.Image, ImageID: behavior.ImageID,
	}}
	p.Attempts = append(p.Attempts, c)
	if behavior.StartError != nil {
		r.end(c, Exit{Code: runtime.ExitCodeStartError, Reason: runtime.ReasonStartError, Message: behavior.StartError.Error()})
		return c.ID, behavior.StartError
	}
	w := behavior.Waiting
	if w == nil {
		r.begin(c)
		return c.ID, nil
	}
	c.Reason, c.Message = w.Reason, w.Message
	if w.For > 0 {
		time.AfterFunc(w.For, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.begin(c)
		})
	}
	r.Notify(manifest.UID)
	return c.ID, nil
}

// begin needs mu. begin does nothing to a container that does not wait.
func (r *Runtime) begin(c *container) {
	if c.State != runtime.Created {
		return
	}
	c.State, c.StartedAt, c.Reason, c.Message = runtime.Running, r.now(), "", ""
	if lives := c.behavior.Lives; lives > 0 {
		time.AfterFunc(lives, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.end(c, c.behavior.exit())
		})
	}
	r.Notify(c.uid)
}

// StopContainer ends the container by its behavior, or kills it.
func (r *Runtime) StopContainer(_ context.Context, id string, grace time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("StopContainer", fmt.Sprintf("%s %s", id, grace)); err != nil {
		return err
	}
	c, err := r.pods.Find(id)
	if err != nil || c.State == runtime.Exited {
		return err
	}
	deadline, exit := time.Now().Add(grace), Exit{Code: 128 + int32(syscall.SIGKILL), Signal: int32(syscall.SIGKILL)}
	if after := c.behavior.StopsAfter; after < grace {
		deadline, exit = time.Now().Add(after), c.behavior.stopExit()
	}
	if c.stop != nil && !deadline.Before(c.deadline) {
		return nil // an earlier call asked for no more than this
	}
	if c.stop != nil {
		c.stop.Stop()
	}
	c.deadline = deadline
	if !deadline.After(time.Now()) {
		r.end(c, exit)
		return nil
	}
	c.stop = time.AfterFunc(time.Until(deadline), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.end(c, exit)
	})
	return nil
}

// RemovePod forgets a pod.
func (r *Runtime) RemovePod(_ context.Context, uid types.UID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("RemovePod", string(uid)); err != nil {
		return err
	}
	removed, err := r.pods.Remove(uid)
	if removed {
		r.Notify(uid)
	}
	return err
}

// Pod returns the state of one pod.
func (r *Runtime) Pod(_ context.Context, uid types.UID) (runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fails("Pod"); err != nil {
		return runtime.Pod{}, err
	}
	p, err := r.pods.Pod(uid)
	if err != nil {
		return runtime.Pod{}, err
	}
	return p.Snapshot(), nil
}

// Pods returns the states of all pods.
func (r *Runtime) Pods(context.Context) ([]runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fails("Pods"); err != nil {
		return nil, err
	}
	return r.pods.List(), nil
}

// Exec calls the script of [Runtime.ExecWith]. Without one every command succeeds.
func (r *Runtime) Exec(ctx context.Context, id string, command []string) (runtime.ExecResult, error) {
	r.mu.Lock()
	err := r.called("Exec", id+" "+strings.Join(command, " "))
	c, found := r.pods.Find(id)
	exec := r.scripts.exec
	var snapshot runtime.Container
	if found == nil {
		snapshot = c.Container
	}
	r.mu.Unlock()
	switch {
	case err != nil:
		return runtime.ExecResult{}, err
	case found != nil:
		return runtime.ExecResult{}, found
	case snapshot.State != runtime.Running:
		return runtime.ExecResult{}, fmt.Errorf("runtimefake: exec in %s: %w", id, runtime.ErrNotRunning)
	case exec == nil:
		return runtime.ExecResult{}, nil
	}
	return exec(ctx, snapshot, command)
}

// Logs reads the text of [Runtime.WriteLog], or the end of a long one.
func (r *Runtime) Logs(ctx context.Context, id string, options runtime.LogOptions) (io.ReadCloser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil {
		return nil, err
	}
	return c.log.Open(ctx, options), nil
}

// now is the time as the machine's clock shows it. now needs mu.
func (r *Runtime) now() time.Time { return time.Now().Add(r.skew).Round(0) }

// end needs mu. The first end of a container counts.
func (r *Runtime) end(c *container, exit Exit) {
	if c.State == runtime.Exited {
		return
	}
	if c.stop != nil {
		c.stop.Stop()
	}
	c.State, c.FinishedAt = runtime.Exited, r.now()
	c.ExitCode, c.Signal, c.Message = exit.Code, exit.Signal, exit.Message
	c.Reason = exit.reason()
	c.log.End()
	r.Notify(c.uid)
}
