package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/internal/mounts"
	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// Scheme is the prefix of the IDs of this runtime's containers.
const Scheme = "process://"

// Options of a runtime. Only Dir is required.
type Options struct {
	// Dir is the state directory of the runtime. It is created if missing, and one runtime at a
	// time can use it.
	Dir string
	// NodeIPs are the addresses of this machine, which its pods share.
	NodeIPs []string
	// Addresses returns the addresses instead, if they can change while the runtime runs.
	Addresses func() []string
	// Version is the part of [Runtime.Version] after the scheme; "v0" if empty.
	Version string
	// ShimCommand starts a shim in the container's directory, with the container's ID as an
	// additional argument. If empty, the program statusd-shim in the directory of this program is
	// used, which needs a quarter of the memory, or else this program itself, which must call
	// [ShimMain] when [IsShim] returns true.
	ShimCommand []string
	// LogMaxBytes and LogMaxFiles bound the log of each container: 10 MiB and 5 if 0.
	LogMaxBytes int64
	LogMaxFiles int
	// Objects reads config maps, secrets and tokens for volumes and env. If nil, pods that need
	// them are rejected.
	Objects volume.Objects
	// APIServer is the "host:port" of the API server for containers, passed as
	// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. If empty, the variables are not set.
	APIServer string
	// Allocatable returns the allocatable resources of the node, which the downward API reports as
	// limits of containers without limits; nil means no resources.
	Allocatable func() v1.ResourceList
	// AllowPodsWithoutIsolation allows pods that do not ask for the namespaces of the machine, and
	// so expect isolation. Such pods are not isolated: each container is a process of the machine,
	// whatever its spec and the policies of the cluster.
	AllowPodsWithoutIsolation bool
	// CgroupParent is the parent of the pods' cgroups, relative to the root of the hierarchy:
	// "/statusd". If empty, or if it cannot be created, pods with limits are rejected.
	CgroupParent string
	// Event receives events of pods for problems that no method returns; may be nil.
	Event func(pod *v1.Pod, container, eventType, reason, message string)
	// Logger logs problems that no method returns; nothing is logged if nil.
	Logger *slog.Logger
	// Former is the runtime that used Dir before in this process, as before a reload of a config. Its Run has returned, and it is
	// not closed: New takes over its state, and open streams of clients continue.
	Former *Runtime
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("process: Options.Dir is empty; name the directory where the runtime keeps its state")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("process: %w", err)
	}
	o.Dir = dir
	if o.Version == "" {
		o.Version = "v0"
	}
	if o.Addresses == nil {
		fixed := o.NodeIPs
		o.Addresses = func() []string { return fixed }
	}
	if o.LogMaxBytes == 0 {
		o.LogMaxBytes = 10 << 20
	}
	if o.LogMaxFiles == 0 {
		o.LogMaxFiles = 5
	}
	if o.Event == nil {
		o.Event = func(*v1.Pod, string, string, string, string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Runtime runs containers as processes of this machine. See the package comment.
type Runtime struct {
	runtime.Changes
	*state

	options Options
	keeper  *podvolume.Keeper // of volumes with contents
	groups  *groups           // control groups
	sweeps  sync.WaitGroup    // clean-ups after shims that were killed
	ran     atomic.Bool
}

// state is the state of a runtime and its directory, passed to the runtime that takes over the directory in the same process.
type state struct {
	dir     string
	root    bool   // may become any user, see canBeAnyUser
	views   bool   // containers can have views of their own
	boot    string // of the machine
	lock    *dirLock
	exits   *exits
	cleaner *cleaner
	logs    logfile.Watches
	// noMemory says why volumes cannot be in memory; empty if they can.
	noMemory string

	statistics statistics
	// grouping is held while groups are made or removed, so that a pod's groups do not
	// vanish under a container that is about to get into them.
	grouping sync.Mutex
	problems problems
	owner    atomic.Pointer[Runtime] // closes it

	mu         sync.Mutex // guards pods, all that hangs below, podGroups and unreadable
	pods       map[types.UID]*pod
	podGroups  podGroups
	unreadable map[types.UID]error // why New could not take these over
}

var (
	_ runtime.Runtime         = (*Runtime)(nil)
	_ runtime.Runner          = (*Runtime)(nil)
	_ runtime.ProblemReporter = (*Runtime)(nil)
)

// New takes over the directory from its last runtime, with the containers that still run. New
// starts nothing: exits are detected while Run runs. Close releases the directory.
func New(options Options) (*Runtime, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := mounts.CheckKernel(); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	r := &Runtime{options: options, keeper: podvolume.NewKeeper(options.Objects, options.Event, options.Logger), groups: openGroups(options.CgroupParent, options.Logger)}
	r.findShim()
	if former := options.Former; former != nil {
		r.options.Former = nil // which would keep all that were before it
		if err := r.follow(former); err != nil {
			return nil, err
		}
		return r, nil
	}
	r.state = &state{dir: options.Dir, root: canBeAnyUser(), cleaner: newCleaner(), pods: map[types.UID]*pod{}, unreadable: map[types.UID]error{}}
	r.owner.Store(r)
	keepDescriptors()
	if r.boot, err = proc.BootID(); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	if err := r.makeDirs(); takesNoWrites(err) {
		r.report("state directory cannot be made now", options.Dir, err)
	} else if err != nil {
		return nil, fmt.Errorf("process: state directory: %w", err)
	}
	if err := tryViews(options.Dir); err != nil {
		options.Logger.Info("mounts unavailable, containers find their volumes by environment variables only", "err", err)
	} else {
		r.views = true
	}
	r.noMemory = r.memoryProblem()
	if r.lock, err = lockDir(options.Dir); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	if r.exits, err = newExits(); err != nil {
		return nil, errors.Join(fmt.Errorf("process: %w", err), r.lock.release())
	}
	r.load()
	r.hearAll()
	return r, nil
}

// follow takes over the state of another runtime, which still serves the streams of its clients.
func (r *Runtime) follow(former *Runtime) error {
	if former.dir != r.options.Dir {
		return fmt.Errorf("process: the runtime of %s cannot take over that of %s", r.options.Dir, former.dir)
	}
	if !former.owner.CompareAndSwap(former, r) {
		return fmt.Errorf("process: the runtime of %s was taken over or closed before", former.dir)
	}
	r.state = former.state
	if former.options.CgroupParent != r.options.CgroupParent {
		former.groups.close()
	}
	return nil
}

// keepDescriptors keeps what this process was started with, such as the pipe of a script, from shims
// and containers: nothing that Go opens is inherited, but what is inherited is passed on. Kernels
// before 5.11 cannot.
func keepDescriptors() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// Close releases the directory and leaves the containers running. Call Close after Run has returned; no other method may be
// called afterwards. If another runtime has taken over the directory, Close does nothing.
func (r *Runtime) Close() error {
	if !r.owner.CompareAndSwap(r, nil) {
		return nil
	}
	r.groups.close()
	return errors.Join(r.exits.close(), r.lock.release())
}

// Version implements [runtime.Runtime].
func (r *Runtime) Version() string { return Scheme + r.options.Version }

var errRunTwice = errors.New("process: Run may be called only once")

// Run detects the exits of containers, and deletes the remains of removed pods, until ctx is done.
// Run may be called once.
func (r *Runtime) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errRunTwice
	}
	defer r.sweeps.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // when waiting fails
	r.sweeps.Go(func() { r.cleanUp(ctx) })
	r.keepAdopted()
	r.reachStarting(ctx)
	defer r.keeper.Run(ctx)()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		r.exits.wakeUp()
	})
	defer func() {
		if !stop() {
			<-woken // it may not touch descriptors that Close closes
		}
	}()
	for {
		ended, spoke, err := r.exits.wait()
		if err != nil {
			return fmt.Errorf("process: wait for containers: %w", err)
		}
		for _, c := range spoke {
			r.hear(c)
		}
		for _, c := range ended {
			r.shimEnded(c)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// sweepTimeout bounds the wait for processes that even SIGKILL does not end.
const sweepTimeout = 10 * time.Second

// unknownExitMessage is what the pod's status says of a container whose end was not seen.
const unknownExitMessage = "The shim of the container ended before it could record how the container ended"

// shimEnded takes over from a shim that is no more.
func (r *Runtime) shimEnded(c *container) {
	r.hear(c)
	r.refresh(c)
	if r.stateOf(c) == runtime.Exited {
		r.removeCgroups(c)
		return
	}
	if !c.dir.exists() {
		r.forget(c) // its shim never got the go, and has removed it
		return
	}
	// Killing takes as long as the kernel needs, and other exits must not wait for it.
	r.sweeps.Go(func() { r.sweep(c) })
}

// sweep ends what a killed shim has left behind and records that the exit is unknown.
func (r *Runtime) sweep(c *container) {
	r.options.Logger.Warn("shim is gone without recording an exit, killing what is left", "uid", c.uid, "container", c.spec.Name, "id", c.spec.ID)
	r.mu.Lock()
	started := c.started
	r.mu.Unlock()
	members := proc.Members{Variable: c.marker()}
	_, members.Arguments = r.options.shimCommand(c.spec.ID)
	exit := record.Exit{ExitCode: runtime.ExitCodeUnknown, Reason: runtime.ReasonUnknown, Message: unknownExitMessage}
	if started != nil {
		members.Leader, exit.StartedAt = started.Main, started.At
	}
	r.killRest(c, members)
	exit.FinishedAt = time.Now()
	if err := record.WriteDurably(c.dir.Exit(), exit); err != nil {
		// It is known in this process all the same, and found out again by the next.
		r.options.Logger.Error("recording an exit failed", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
	r.apply(c, nil, &exit)
	r.removeCgroups(c)
}

// killRest kills all that is in the control groups of a container, and its members.
func (r *Runtime) killRest(c *container, members proc.Members) {
	if err := cgroup.Kill(c.spec.Cgroup, sweepTimeout, nil); err != nil {
		r.options.Logger.Error("killing what is left in control groups failed", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
	if err := members.Kill(sweepTimeout); err != nil {
		r.options.Logger.Error("killing processes of a container failed", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
}

// commandEnded is called after each command that was executed in a container. While the container's own command runs, what the other one
// has left in the background ends with the container. Afterwards the shim may have killed already all that it found.
func (r *Runtime) commandEnded(c *container) {
	r.mu.Lock()
	main := c.started.Main // set before a container is Running
	r.mu.Unlock()
	if !main.HasEnded() {
		return
	}
	r.killRest(c, proc.Members{Variable: c.marker()})
	select {
	case <-c.ended:
		r.removeCgroups(c)
	default: // by Run
	}
}
