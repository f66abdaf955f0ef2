package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/internal/mounts"
	"github.com/statusd/statusd/internal/podusage"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/runtime"
)

// Runtime runs pods over CRI. See the package comment.
type Runtime struct {
	runtime.Changes

	options Options
	cri     *connection
	keeper  *podvolume.Keeper
	groups  *groups
	logs    logfile.Watches
	images  imageStore
	records *pullRecords

	stops   stops
	pulling sync.WaitGroup
	life    context.Context // of stops and pulls; ends with Close
	finish  context.CancelFunc
	ran     atomic.Bool
	// wasDown: the container runtime did not answer, and may be another release when it does.
	wasDown atomic.Bool

	mu         sync.Mutex // guards what follows, and all that hangs below
	pods       map[types.UID]*pod
	generation uint64    // counts additions to pods
	problem    error     // why the node cannot take pods
	answered   time.Time // when the container runtime last said how it is
	problems   map[string]runtime.Problem
	late       map[types.UID]lateRemoval
}

var (
	_ runtime.Runtime         = (*Runtime)(nil)
	_ runtime.Runner          = (*Runtime)(nil)
	_ runtime.ProblemReporter = (*Runtime)(nil)
	_ runtime.PodUpdater      = (*Runtime)(nil)
	_ runtime.VolumeRemover   = (*Runtime)(nil)
	_ runtime.LogRemover      = (*Runtime)(nil)
	_ runtime.Resizer         = (*Runtime)(nil)
	_ runtime.Streamer        = (*Runtime)(nil)
	_ runtime.Statser         = (*Runtime)(nil)
	_ runtime.Meter           = (*Runtime)(nil)
	_ runtime.Gate            = (*Runtime)(nil)
	_ runtime.ImageStore      = (*Runtime)(nil)
)

// pod is a started pod.
type pod struct {
	dir       podDir
	manifest  *v1.Pod
	createdAt time.Time
	ips       []string
	// resized are the resources of containers that have others than in the manifest. Maps are replaced, not changed.
	resized   map[string]v1.ResourceRequirements
	kubelet   string  // the pod's directory left by a kubelet that no longer uses it; empty: none
	firstUser uint32  // of its user namespace; 0: the node's user namespace
	addressed string  // the sandbox that has the ips
	sandbox   sandbox // the newest one
	// placeSince is when the present sandbox was made.
	placeSince time.Time
	unheard    bool             // the container runtime may be making a sandbox, of which nothing is heard
	released   bool             // volumes and network are removed: the pod has ended
	creating   bool             // StartContainer is under way
	pulls      map[string]*pull // by container name
	containers []*container
	saving     sync.Mutex // orders the writes of its record; taken before Runtime.mu
	resizing   sync.Mutex // orders the resizes of its containers; taken before saving
}

// sandbox is where the containers of a pod run. An empty ID means no sandbox.
type sandbox struct {
	id      string
	attempt uint32
	ready   bool
	// generation is that of Runtime when the sandbox was made here; 0 if it was found.
	generation uint64
}

// container is one attempt of one container.
type container struct {
	uid     types.UID
	id      string // of the container runtime
	sandbox string
	log     string // path of its log
	link    string // to its log
	dir     string // of its files
	// messageFile has its termination message, if that is not in dir.
	messageFile string
	fromLog     bool   // its termination message may come from its log
	signal      string // that stops it, if not the image's
	generation  uint64
	startErr    error // of its start; guarded by Runtime.mu
	cpu         podusage.CPUCount

	view  runtime.Container
	ended chan struct{} // closed when it has exited
}

// New connects to the container runtime, which must answer, and takes over the pods that an earlier statusd has started. It starts nothing: call Run.
func New(options Options) (*Runtime, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cri: %w", err)
	}
	if err := mounts.CheckKernel(); err != nil {
		return nil, fmt.Errorf("cri: %w", err)
	}
	r := &Runtime{options: options, pods: map[types.UID]*pod{}, problems: map[string]runtime.Problem{}, late: map[types.UID]lateRemoval{}}
	r.life, r.finish = context.WithCancel(context.Background())
	r.keeper = podvolume.NewKeeper(options.Objects, options.Event, options.Logger)
	if r.cri, err = connect(options.Endpoint); err != nil {
		return nil, fmt.Errorf("cri: %w", err)
	}
	r.groups = openGroups(options.CgroupParent, r.cri.systemd, r.cri.name, options.Logger)
	if err := errors.Join(r.load(), r.adopt(), r.loadPullRecords()); err != nil {
		return nil, errors.Join(fmt.Errorf("cri: %w", err), r.Close())
	}
	return r, nil
}

// adopt takes over what the container runtime has of the pods that were loaded.
func (r *Runtime) adopt() error {
	ctx, cancel := r.ask(context.Background())
	defer cancel()
	if err := r.relist(ctx); err != nil {
		return err
	}
	r.look(ctx)
	r.sweepLinks()
	r.resumeStops()
	return nil
}

// Run implements [runtime.Runner].
func (r *Runtime) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errors.New("cri: Run was called twice")
	}
	defer r.keeper.Run(ctx)()
	r.keepAdopted()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { r.rotateLogs(ctx) })
	background.Go(func() { r.keepImages(ctx) })
	background.Go(func() { wake.Every(ctx, lateEvery, func() { r.removeLate(ctx) }) })
	r.watch(ctx)
	return nil
}

// Close ends the connection. Containers run on.
func (r *Runtime) Close() error {
	r.finish()
	r.stops.wait()
	r.pulling.Wait()
	return r.cri.conn.Close()
}

// Version implements [runtime.Runtime].
func (r *Runtime) Version() string { return r.cri.name + "://" + r.cri.release.Load().version }

func (r *Runtime) fullID(id string) string { return r.cri.name + "://" + id }

func bareID(id string) string {
	_, bare, _ := strings.Cut(id, "://")
	return bare
}

// find needs mu.
func (r *Runtime) find(id string) (*container, error) {
	bare := bareID(id)
	for _, p := range r.pods {
		for _, c := range p.containers {
			if c.id == bare {
				return c, nil
			}
		}
	}
	return nil, fmt.Errorf("cri: container %s: %w", id, runtime.ErrNotFound)
}

// lookup is find for callers without mu.
func (r *Runtime) lookup(id string) (*container, runtime.State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(id)
	if err != nil {
		return nil, "", err
	}
	return c, c.view.State, nil
}

// place is a started pod.
func (r *Runtime) place(uid types.UID) (*pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, known := r.pods[uid]; known {
		return p, nil
	}
	return nil, fmt.Errorf("cri: pod %s: %w", uid, runtime.ErrNotFound)
}

// Pod implements [runtime.Runtime].
func (r *Runtime) Pod(_ context.Context, uid types.UID) (runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.pods[uid]
	if !known {
		return runtime.Pod{}, fmt.Errorf("cri: pod %s: %w", uid, runtime.ErrNotFound)
	}
	return r.snapshot(p), nil
}

// Pods implements [runtime.Runtime].
func (r *Runtime) Pods(context.Context) ([]runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []runtime.Pod
	for _, uid := range slices.Sorted(maps.Keys(r.pods)) {
		all = append(all, r.snapshot(r.pods[uid]))
	}
	return all, nil
}

// snapshot needs mu.
func (r *Runtime) snapshot(p *pod) runtime.Pod {
	s := runtime.Pod{Manifest: p.manifest.DeepCopy(), IPs: slices.Clone(r.addressesOf(p)), CreatedAt: p.createdAt, PlaceSince: p.placeSince, NoPlace: !p.sandbox.ready}
	for _, c := range p.containers {
		view := c.view
		view.EarlierPlace = view.State == runtime.Exited && c.sandbox != p.sandbox.id
		s.Containers = append(s.Containers, view)
	}
	slices.SortFunc(s.Containers, func(a, b runtime.Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt))
	})
	return s
}

// addressesOf needs mu. A pod with the network of the node has its addresses.
func (r *Runtime) addressesOf(p *pod) []string {
	if p.manifest.Spec.HostNetwork {
		return r.options.Addresses()
	}
	return p.ips
}

// UpdatePod implements [runtime.PodUpdater].
func (r *Runtime) UpdatePod(pod *v1.Pod) { r.keeper.Update(pod) }

// Problems implements [runtime.ProblemReporter].
func (r *Runtime) Problems() []runtime.Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []runtime.Problem
	for _, path := range slices.Sorted(maps.Keys(r.problems)) {
		all = append(all, r.problems[path])
	}
	return all
}

// report keeps a problem for Problems, or forgets it if err is nil.
func (r *Runtime) report(path string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.problems, path)
		return
	}
	since := time.Now()
	if old, known := r.problems[path]; known {
		since = old.Since
	}
	r.problems[path] = runtime.Problem{Path: path, Err: err, Since: since}
}
