package podvolume

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
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
	// so on up to MaxRetry.
	contentsRetry = 500 * time.Millisecond
	MaxRetry      = 2 * time.Minute
	// AuthorizerLag is how long the API server's own watch may take to show that a pod is on this
	// node. Until then it forbids the node the objects of the pod.
	AuthorizerLag = time.Second
	// contentsJitter spreads the renewal of tokens that were requested together.
	contentsJitter = 10 * time.Second
)

// Keeper keeps the volumes up to date whose contents come from the API: a goroutine for
// each pod that has any, so that a pod whose objects cannot be read delays no other.
type Keeper struct {
	objects volume.Objects // nil: no API server
	event   func(pod *v1.Pod, container, eventType, reason, message string)
	log     *slog.Logger

	mu    sync.Mutex // guards what follows
	ctx   context.Context
	pods  map[types.UID]*Contents
	loops sync.WaitGroup
}

// Contents are the volumes of one pod that have contents.
type Contents struct {
	contents *volume.Contents
	pod      *v1.Pod
	wake     chan struct{}      // one place: what has changed is looked at all at once
	due      time.Time          // the first refresh of the loop; zero waits to be woken
	cancel   context.CancelFunc // nil while no loop runs
	done     chan struct{}      // closed when the loop has ended
}

// Poke triggers a refresh.
func (k *Contents) Poke() {
	wake.Up(k.wake)
}

// NewKeeper makes a keeper. objects may be nil: no API server.
func NewKeeper(objects volume.Objects, event func(pod *v1.Pod, container, eventType, reason, message string), log *slog.Logger) *Keeper {
	return &Keeper{objects: objects, event: event, log: log, pods: map[types.UID]*Contents{}}
}

// HasContents reports whether any volume of the pod is the keeper's.
func HasContents(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if volume.HasContents(&pod.Spec.Volumes[i].VolumeSource) {
			return true
		}
	}
	return false
}

// NewContents is a pod whose volumes were not written yet.
func NewContents(pod *v1.Pod, options volume.Options) *Contents {
	return &Contents{pod: pod, wake: make(chan struct{}, 1), contents: volume.NewContents(pod, options)}
}

// Fill writes the contents of a new pod's volumes, or returns the volumes that failed.
func (k *Contents) Fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, contentsTimeout)
	defer cancel()
	next, err := k.contents.Refresh(ctx, time.Now())
	if apierrors.IsForbidden(err) {
		select {
		case <-time.After(AuthorizerLag):
			next, err = k.contents.Refresh(ctx, time.Now())
		case <-ctx.Done():
		}
	}
	k.due = next
	return mountErrors(err)
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

// Add keeps a pod up to date from now on. A nil pod has nothing to keep.
func (k *Keeper) Add(uid types.UID, pod *Contents) {
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
		k.objects.Follow(uid, volume.References(pod.pod), pod.Poke)
	}
}

// start needs mu. start does nothing unless the keeper runs.
func (k *Keeper) start(pod *Contents) {
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

// Remove ends the loop of Add. When it returns, no goroutine writes to the volumes.
func (k *Keeper) Remove(uid types.UID) {
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

// Update passes on a change of a pod: labels and annotations may be in its volumes.
func (k *Keeper) Update(pod *v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept := k.pods[pod.UID]; kept != nil && kept.contents.Update(pod) {
		kept.Poke()
	}
}

// Run starts the loops of all pods and returns a function that stops them.
func (k *Keeper) Run(ctx context.Context) (stop func()) {
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
func (k *Keeper) keep(ctx context.Context, pod *Contents) {
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
		retry = min(2*retry, MaxRetry)
	}
}

func (k *Keeper) refresh(ctx context.Context, pod *Contents) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, contentsTimeout)
	defer cancel()
	next, err := pod.contents.Refresh(ctx, time.Now())
	return next, mountErrors(err)
}

// failed says which volumes are out of date. The containers run on with what there is.
func (k *Keeper) failed(pod *v1.Pod, err error) {
	k.log.Warn("volumes are out of date, will retry", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
	for _, mount := range runtime.MountErrors(err) {
		k.event(pod, "", v1.EventTypeWarning, runtime.EventFailedMount, mount.Error())
	}
}

// Pods are the UIDs of the pods that are kept up to date, in order.
func (k *Keeper) Pods() []types.UID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.pods))
}
