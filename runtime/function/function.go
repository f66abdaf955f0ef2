package function

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/runtimememory"
	"github.com/statusd/statusd/runtime"
)

// Call is one attempt of one container.
type Call struct {
	// Pod and Container must not be changed.
	Pod       *v1.Pod
	Container *v1.Container
	// Attempt counts the starts of this container, from 0.
	Attempt int
	// Log receives the output of the container, for kubectl logs. The end of the output is kept.
	Log io.Writer
}

// Options of a runtime. Only Run is required.
type Options struct {
	// Run runs a container and returns when the container has ended, at the latest soon after ctx
	// ends. A non-nil error fails the container; return an [ExitError] to set the exit code.
	Run func(ctx context.Context, call Call) error
	// Name is the part before "://" of container IDs and of the runtime's version;
	// "function" if empty.
	Name string
	// IPs returns the addresses of a pod. If nil, pods have no addresses.
	IPs func(pod *v1.Pod) []string
	// Honors lists additional fields that this function honors, by the names of Check without
	// indices: "spec.volumes.emptyDir", "spec.containers.resources.limits.example.com/gpu". A name
	// includes all fields below it: "spec.volumes" includes every kind of volume. Fields of init
	// and ephemeral containers are named as fields of containers.
	Honors []string
}

// Validate returns all errors in the options.
func (o *Options) Validate() error {
	if o.Run == nil {
		return errors.New("function: options: Run is nil: nothing would run the containers")
	}
	return nil
}

// ExitError is an error with the exit code of a container.
type ExitError struct {
	Code    int32
	Message string
}

func (e *ExitError) Error() string {
	return cmp.Or(e.Message, fmt.Sprintf("exit code %d", e.Code))
}

// Runtime runs containers as calls of a function. See the package comment.
type Runtime struct {
	runtime.Changes

	options Options
	prefix  string // of container IDs, which no other process of this program has
	honored map[string]bool
	calls   sync.WaitGroup

	mu      sync.Mutex // guards all below
	closed  bool
	started int
	pods    runtimememory.Table[*container]
}

var _ runtime.Runtime = (*Runtime)(nil)

type container struct {
	runtime.Container
	log     runtimememory.Log
	cancel  context.CancelFunc
	stopped bool
}

// View implements [runtimememory.Attempt].
func (c *container) View() *runtime.Container { return &c.Container }

// New creates a runtime. New starts nothing.
func New(options Options) (*Runtime, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.Name == "" {
		options.Name = "function"
	}
	r := &Runtime{options: options, prefix: options.Name + "://" + rand.Text() + "-", honored: map[string]bool{}, pods: runtimememory.NewTable[*container]("function")}
	for _, field := range honored {
		r.honored["spec."+field] = true
	}
	for _, field := range options.Honors {
		r.honored[field] = true
	}
	return r, nil
}

// Close cancels the contexts of all calls and waits until they have returned. Call Close after the
// agent has returned from Run.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	for _, p := range r.pods.Pods {
		for _, c := range p.Attempts {
			c.cancel()
		}
	}
	r.mu.Unlock()
	r.calls.Wait()
	return nil
}

// Version implements [runtime.Runtime].
func (r *Runtime) Version() string { return r.options.Name + "://v0" }

// StartPod implements [runtime.Runtime].
func (r *Runtime) StartPod(_ context.Context, manifest *v1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.pods.Pods[manifest.UID]; known {
		return nil
	}
	p := &runtimememory.Pod[*container]{Pod: runtime.Pod{Manifest: manifest.DeepCopy(), CreatedAt: time.Now()}}
	if r.options.IPs != nil {
		p.IPs = r.options.IPs(p.Manifest)
	}
	r.pods.Pods[manifest.UID] = p
	r.Notify(manifest.UID)
	return nil
}

// StartContainer implements [runtime.Runtime].
func (r *Runtime) StartContainer(_ context.Context, manifest *v1.Pod, spec *v1.Container, attempt int) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.pods.MayStart(manifest.UID, spec.Name, attempt)
	if err != nil {
		return "", err
	}
	if r.closed {
		return "", errors.New("function: the runtime is closed")
	}
	forgetOld(p, spec.Name)
	r.started++
	now := time.Now()
	c := &container{Container: runtime.Container{
		ID: fmt.Sprint(r.prefix, r.started), Name: spec.Name, Attempt: attempt, Image: spec.Image,
		State: runtime.Running, CreatedAt: now, StartedAt: now,
	}}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	p.Attempts = append(p.Attempts, c)
	call := Call{Pod: manifest.DeepCopy(), Container: spec.DeepCopy(), Attempt: attempt, Log: c.log.Stream(runtime.Stdout)}
	r.calls.Go(func() {
		defer c.cancel()
		r.ended(manifest.UID, c, r.options.Run(ctx, call))
	})
	r.Notify(manifest.UID)
	return c.ID, nil
}

// forgetOld keeps the newest attempt of a container, which will be the second newest.
func forgetOld(p *runtimememory.Pod[*container], name string) {
	newest := -1
	for _, c := range p.Attempts {
		if c.Name == name {
			newest = max(newest, c.Attempt)
		}
	}
	p.Attempts = slices.DeleteFunc(p.Attempts, func(c *container) bool { return c.Name == name && c.Attempt < newest })
}

// ended records how a call has returned.
func (r *Runtime) ended(uid types.UID, c *container, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.State, c.FinishedAt, c.Reason = runtime.Exited, time.Now(), runtime.ReasonCompleted
	if err != nil {
		c.ExitCode, c.Reason, c.Message = 1, runtime.ReasonError, err.Error()
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		c.ExitCode, c.Message = exit.Code, exit.Message
		if exit.Code == 0 {
			c.Reason = runtime.ReasonCompleted
		}
	} else if c.stopped && errors.Is(err, context.Canceled) {
		c.ExitCode, c.Signal, c.Message = 128+int32(syscall.SIGTERM), int32(syscall.SIGTERM), ""
	}
	c.Message = c.Message[:min(len(c.Message), runtime.MaxMessageBytes)]
	c.log.End()
	r.Notify(uid)
}

// StopContainer implements [runtime.Runtime]. The function must keep the grace period itself: a
// function cannot be killed.
func (r *Runtime) StopContainer(_ context.Context, id string, _ time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil || c.State == runtime.Exited {
		return err
	}
	c.stopped = true
	c.cancel()
	return nil
}

// RemovePod implements [runtime.Runtime].
func (r *Runtime) RemovePod(_ context.Context, uid types.UID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	removed, err := r.pods.Remove(uid)
	if removed {
		r.Notify(uid)
	}
	return err
}

// Pod implements [runtime.Runtime].
func (r *Runtime) Pod(_ context.Context, uid types.UID) (runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.pods.Pod(uid)
	if err != nil {
		return runtime.Pod{}, err
	}
	return p.Snapshot(), nil
}

// Pods implements [runtime.Runtime].
func (r *Runtime) Pods(context.Context) ([]runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods.List(), nil
}

// Exec implements [runtime.Runtime] and fails: a function has no environment for commands.
func (r *Runtime) Exec(context.Context, string, []string) (runtime.ExecResult, error) {
	return runtime.ExecResult{}, fmt.Errorf("function: exec: %w", errors.ErrUnsupported)
}

// Logs implements [runtime.Runtime].
func (r *Runtime) Logs(ctx context.Context, id string, options runtime.LogOptions) (io.ReadCloser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil {
		return nil, err
	}
	return c.log.Open(ctx, options), nil
}
