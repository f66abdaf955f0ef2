package process

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/runtime"
)

const (
	// contentsTimeout bounds one look at the objects of a pod.
	contentsTimeout = 20 * time.Second
	// A refresh that fails is tried again after contentsRetry, then after twice as long, and
	// so on up to contentsMaxRetry.
	contentsRetry    = 500 * time.Millisecond
	contentsMaxRetry = 2 * time.Minute
	// authorizerLag is how long the API server may take to learn from its own watch that a pod is on
	// this node. Until then it forbids the node what the pod refers to.
	authorizerLag = time.Second
	// contentsJitter spreads the renewal of tokens that were requested together.
	contentsJitter = 10 * time.Second
)

// keeper keeps the volumes up to date whose contents come from the API: a goroutine for
// each pod that has any, so that one whose objects cannot be read delays no other.
type keeper struct {
	objects volume.Objects // nil: no API server
	event   func(pod *v1.Pod, container, eventType, reason, message string)
	log     *slog.Logger

	mu    sync.Mutex // guards what follows
	ctx   context.Context
	pods  map[types.UID]*kept
	loops sync.WaitGroup
}

// kept is one pod with contents.
type kept struct {
	contents *volume.Contents
	pod      *v1.Pod
	wake     chan struct{}      // one place: what has changed is looked at all at once
	due      time.Time          // the first refresh of the loop; zero waits to be woken
	cancel   context.CancelFunc // nil while no loop runs
	done     chan struct{}      // closed when the loop has ended
}

func (k *kept) poke() {
	wake.Up(k.wake)
}

func newKeeper(options Options) *keeper {
	return &keeper{objects: options.Objects, event: options.Event, log: options.Logger, pods: map[types.UID]*kept{}}
}

// hasContents reports whether any volume of the pod is the keeper's.
func hasContents(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if volume.HasContents(&pod.Spec.Volumes[i].VolumeSource) {
			return true
		}
	}
	return false
}

// newKept is a pod whose volumes were not written yet.
func (r *Runtime) newKept(p *pod) *kept {
	return &kept{pod: p.manifest, wake: make(chan struct{}, 1), contents: volume.NewContents(p.manifest, volume.Options{
		Objects: r.options.Objects, Dir: p.dir.volume, Root: r.root, Group: p.group,
		Fields: func(pod *v1.Pod) volume.Fields { return r.fields(pod, nil) },
	})}
}

// fill writes the contents of a new pod's volumes, or says which of them it cannot.
func (r *Runtime) fill(ctx context.Context, p *pod) (*kept, error) {
	if !hasContents(p.manifest) {
		return nil, nil
	}
	k := r.newKept(p)
	ctx, cancel := context.WithTimeout(ctx, contentsTimeout)
	defer cancel()
	next, err := k.contents.Refresh(ctx, time.Now())
	if apierrors.IsForbidden(err) {
		select {
		case <-time.After(authorizerLag):
			next, err = k.contents.Refresh(ctx, time.Now())
		case <-ctx.Done():
		}
	}
	k.due = next
	return k, mountErrors(err)
}

// mountErrors puts what package volume says into the words of the runtime's callers.
func mountErrors(err error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var all []error
	for _, one := range joined.Unwrap() {
		if failed, ok := errors.AsType[*volume.SetUpError](one); ok {
			one = &runtime.MountError{Volume: failed.Volume, Err: failed.Err}
		}
		all = append(all, one)
	}
	return errors.Join(all...)
}

// add keeps a pod up to date from now on. A nil pod has nothing to keep.
func (k *keeper) add(uid types.UID, pod *kept) {
	if pod == nil {
		return
	}
	k.mu.Lock()
	if k.pods[uid] != nil {
		k.mu.Unlock()
		return
	}
	k.pods[uid] = pod
	k.start(pod)
	k.mu.Unlock()
	if k.objects != nil {
		k.objects.Follow(uid, volume.References(pod.pod), pod.poke)
	}
}

// start needs mu. It does nothing unless the keeper runs.
func (k *keeper) start(pod *kept) {
	if k.ctx == nil || pod.cancel != nil {
		return
	}
	var ctx context.Context
	ctx, pod.cancel = context.WithCancel(k.ctx)
	pod.done = make(chan struct{})
	k.loops.Go(func() {
		defer close(pod.done)
		k.keep(ctx, pod)
	})
}

// remove ends what add began. When it returns nothing writes to the volumes any more.
func (k *keeper) remove(uid types.UID) {
	k.mu.Lock()
	pod := k.pods[uid]
	delete(k.pods, uid)
	k.mu.Unlock()
	if pod == nil {
		return
	}
	if k.objects != nil {
		k.objects.Follow(uid, nil, nil)
	}
	if pod.cancel != nil {
		pod.cancel()
		<-pod.done
	}
}

func (k *keeper) update(pod *v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept := k.pods[pod.UID]; kept != nil && kept.contents.Update(pod) {
		kept.poke()
	}
}

// run starts the loops of all pods and returns what stops them.
func (k *keeper) run(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ctx = ctx
	for _, pod := range k.pods {
		k.start(pod)
	}
	return func() {
		k.mu.Lock()
		k.ctx = nil
		k.mu.Unlock()
		cancel()
		k.loops.Wait()
	}
}

// keep refreshes a pod when it is woken and when a token is due.
func (k *keeper) keep(ctx context.Context, pod *kept) {
	due, retry := pod.due, contentsRetry
	if !due.IsZero() {
		due = due.Add(-rand.N(contentsJitter))
	}
	for {
		timer := time.NewTimer(time.Until(due))
		if due.IsZero() {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-pod.wake:
			timer.Stop()
		case <-timer.C:
		}
		next, err := k.refresh(ctx, pod)
		if ctx.Err() != nil {
			return
		}
		due = next
		if err == nil {
			retry = contentsRetry
			continue
		}
		k.failed(pod.pod, err)
		due = time.Now().Add(retry)
		retry = min(2*retry, contentsMaxRetry)
	}
}

func (k *keeper) refresh(ctx context.Context, pod *kept) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, contentsTimeout)
	defer cancel()
	next, err := pod.contents.Refresh(ctx, time.Now())
	return next, mountErrors(err)
}

// failed says which volumes are out of date. The containers run on with what there is.
func (k *keeper) failed(pod *v1.Pod, err error) {
	k.log.Warn("volumes are out of date, will retry", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
	for _, mount := range runtime.MountErrors(err) {
		k.event(pod, "", v1.EventTypeWarning, runtime.EventFailedMount, mount.Error())
	}
}

// UpdatePod implements [runtime.PodUpdater].
func (r *Runtime) UpdatePod(pod *v1.Pod) { r.keeper.update(pod) }

// keepAdopted takes up the pods that an earlier process has started. Their volumes are
// looked at once: objects may have changed meanwhile, and the tokens are of unknown age. A
// pod that has ended may have no volumes any more.
func (r *Runtime) keepAdopted() {
	if r.options.Objects == nil {
		return // what needs none of them was complete from the start
	}
	r.mu.Lock()
	var adopted []*pod
	for _, p := range r.pods {
		if !hasContents(p.manifest) || !p.couldRun() {
			continue
		}
		if _, err := os.Stat(p.dir.volumes()); err == nil {
			adopted = append(adopted, p)
		}
	}
	r.mu.Unlock()
	for _, p := range adopted {
		k := r.newKept(p)
		k.poke()
		r.keeper.add(p.manifest.UID, k)
		if !r.isListed(p) { // removed meanwhile; a removal from now on finds it with the keeper
			r.keeper.remove(p.manifest.UID)
		}
	}
}

func (r *Runtime) isListed(p *pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[p.manifest.UID] == p
}

// couldRun needs Runtime.mu. It reports whether a container of the pod runs or may be
// started again; a pod without any has just been made.
func (p *pod) couldRun() bool {
	if len(p.containers) == 0 || p.manifest.Spec.RestartPolicy != v1.RestartPolicyNever {
		return true
	}
	for _, c := range p.containers {
		if c.view.State != runtime.Exited {
			return true
		}
	}
	return false
}

// refill brings the volumes of a pod up to date again after a restart of the machine.
func (r *Runtime) refill(ctx context.Context, p *pod) error {
	k, err := r.fill(ctx, p)
	if err == nil {
		r.keeper.add(p.manifest.UID, k)
	}
	return err
}
