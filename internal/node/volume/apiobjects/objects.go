package apiobjects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/internal/node/volume"
)

// Objects implements [volume.Objects]. Reading works at any time; changes are noticed while
// Run runs.
type Objects struct {
	client kubernetes.Interface
	log    *slog.Logger

	mu        sync.Mutex // guards what follows
	running   context.Context
	stopped   bool
	watches   sync.WaitGroup
	followers map[types.UID]follower
	followed  map[volume.Reference]*following
}

// follower is a pod and the objects that it follows.
type follower struct {
	references []volume.Reference
	changed    func()
}

// following is the watch of one object.
type following struct {
	pods   map[types.UID]bool
	cancel context.CancelFunc // nil while Run does not run
}

var _ volume.Objects = (*Objects)(nil)

// New makes an Objects. New starts nothing and sends no request. A nil logger discards everything.
func New(client kubernetes.Interface, log *slog.Logger) *Objects {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Objects{
		client: client, log: log,
		followers: map[types.UID]follower{}, followed: map[volume.Reference]*following{},
	}
}

// ConfigMap implements [volume.Objects].
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	object, err := o.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	return object, notFound(err)
}

// Secret implements [volume.Objects].
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	object, err := o.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	return object, notFound(err)
}

func notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return errors.Join(volume.ErrNotFound, err)
	}
	return err
}

// Token implements [volume.Objects].
func (o *Objects) Token(ctx context.Context, namespace, account string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return o.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
}

var errRunTwice = errors.New("apiobjects: Run may be called only once")

// Run follows objects until ctx ends, and returns when no watch is left. Run may be called once.
func (o *Objects) Run(ctx context.Context) error {
	o.mu.Lock()
	if o.running != nil {
		o.mu.Unlock()
		return errRunTwice
	}
	o.running = ctx
	for reference, f := range o.followed {
		o.start(reference, f)
	}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	o.stopped = true
	o.mu.Unlock()
	o.watches.Wait()
	return nil
}

// Follow implements [volume.Objects].
func (o *Objects) Follow(pod types.UID, references []volume.Reference, changed func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.followers[pod].references
	o.followers[pod] = follower{references: references, changed: changed}
	if len(references) == 0 {
		delete(o.followers, pod)
	}
	for _, reference := range references {
		f := o.followed[reference]
		if f == nil {
			f = &following{pods: map[types.UID]bool{}}
			o.followed[reference] = f
			o.start(reference, f)
		}
		f.pods[pod] = true
	}
	wanted := map[volume.Reference]bool{}
	for _, reference := range references {
		wanted[reference] = true
	}
	for _, reference := range before {
		if !wanted[reference] {
			o.drop(pod, reference)
		}
	}
}

// drop needs mu.
func (o *Objects) drop(pod types.UID, reference volume.Reference) {
	f := o.followed[reference]
	if f == nil {
		return
	}
	delete(f.pods, pod)
	if len(f.pods) > 0 {
		return
	}
	delete(o.followed, reference)
	if f.cancel != nil {
		f.cancel()
	}
}

// start needs mu. start does nothing unless Run runs.
func (o *Objects) start(reference volume.Reference, f *following) {
	if o.running == nil || o.stopped || f.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(o.running)
	f.cancel = cancel
	o.watches.Go(func() { o.watch(ctx, reference) })
}

// watch follows one object until ctx ends. The reflector retries with backoff forever.
func (o *Objects) watch(ctx context.Context, reference volume.Reference) {
	log := logr.FromSlogHandler(o.log.Handler())
	lister, object := o.listWatch(reference)
	reflector := cache.NewReflectorWithOptions(lister, object, notifier(func() { o.notify(reference) }), cache.ReflectorOptions{
		Name:   fmt.Sprintf("%s %s/%s", reference.Kind, reference.Namespace, reference.Name),
		Logger: &log,
	})
	reflector.RunWithContext(logr.NewContext(ctx, log))
}

func (o *Objects) listWatch(reference volume.Reference) (cache.ListerWatcher, runtime.Object) {
	selector := fields.OneTermEqualSelector("metadata.name", reference.Name).String()
	lists := func(list func(context.Context, metav1.ListOptions) (runtime.Object, error), follow func(context.Context, metav1.ListOptions) (watch.Interface, error)) cache.ListerWatcher {
		return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.FieldSelector = selector
				return list(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = selector
				return follow(ctx, options)
			},
		}, o.client)
	}
	if reference.Kind == volume.Secret {
		secrets := o.client.CoreV1().Secrets(reference.Namespace)
		return lists(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return secrets.List(ctx, options)
		}, secrets.Watch), &v1.Secret{}
	}
	maps := o.client.CoreV1().ConfigMaps(reference.Namespace)
	return lists(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	}, maps.Watch), &v1.ConfigMap{}
}

// notify calls the followers of an object.
func (o *Objects) notify(reference volume.Reference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.followed[reference]
	if f == nil {
		return
	}
	for pod := range maps.Keys(f.pods) {
		o.followers[pod].changed()
	}
}

// notifier is the store of a reflector that keeps nothing.
type notifier func()

func (n notifier) Add(any) error    { n(); return nil }
func (n notifier) Update(any) error { n(); return nil }
func (n notifier) Delete(any) error { n(); return nil }

func (n notifier) Replace([]any, string) error { n(); return nil }

func (n notifier) Resync() error { return nil }
