package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/internal/podapi"
	"github.com/statusd/statusd/podstatus"
)

// APIOptions configure an [API] source. All fields but Logger are required.
type APIOptions struct {
	// Client needs list and watch of pods with the field selector spec.nodeName, as the Node
	// authorizer grants to system:node:NAME.
	Client   kubernetes.Interface
	NodeName string
	// AllNodes makes it the source of the pods that are bound to any node, in place of NodeName's. It needs list and watch of all pods.
	AllNodes bool
	// Handle receives the changes, one at a time; the watch waits for it.
	Handle func(Change)
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// API is the source of the pods that are bound to this node. It follows a watch, lists again
// when the watch is too old, and retries with backoff forever: an API server that is down
// delays changes and loses none.
type API struct {
	node  string
	log   *slog.Logger
	known *known
	watch cache.ListerWatcher

	mu  sync.Mutex // guards err and relist
	err error
	// relist ends the current watch; nil: no watch.
	relist context.CancelFunc
}

// Validate reports everything that is wrong with the options.
func (o *APIOptions) Validate() error {
	var problems []error
	if o.Client == nil {
		problems = append(problems, errors.New("no Client"))
	}
	if (o.NodeName == "") != o.AllNodes {
		problems = append(problems, errors.New("want either a NodeName or AllNodes"))
	}
	if o.Handle == nil {
		problems = append(problems, errors.New("no Handle"))
	}
	return errors.Join(problems...)
}

// NewAPI makes an API source. NewAPI starts nothing and sends no request: see [API.Run].
func NewAPI(o APIOptions) (*API, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("source: api: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	node, selector := o.NodeName, podapi.OnNode(o.NodeName)
	if o.AllNodes {
		node, selector = "*", podapi.Bound()
	}
	a := &API{
		node:  node,
		log:   o.Logger.With("node", node),
		known: &known{origin: FromAPI, handle: o.Handle},
	}
	pods := o.Client.CoreV1().Pods(metav1.NamespaceAll)
	core, ok := o.Client.CoreV1().RESTClient().(*rest.RESTClient)
	versions := !ok || core != nil // a fake clientset has none
	a.watch = cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			list, err := pods.List(ctx, options)
			if versions {
				err = podapi.Listed(list, err)
			}
			a.answered(ctx, "list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			w, err := pods.Watch(ctx, options)
			a.answered(ctx, "watch", err)
			return w, err
		},
	}, o.Client)
	return a, nil
}

// Run follows the API until ctx ends, then returns nil. Run may be called once.
func (a *API) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		a.follow(ctx)
	}
	return nil
}

// follow lists the pods and watches them until ctx ends or Relist is called.
func (a *API) follow(ctx context.Context) {
	log := logr.FromSlogHandler(a.log.Handler())
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, log))
	defer cancel()
	a.mu.Lock()
	a.relist = cancel
	a.mu.Unlock()
	reflector := cache.NewReflectorWithOptions(a.watch, &v1.Pod{}, apiStore{a.known}, cache.ReflectorOptions{
		Name:   "pods of node " + a.node,
		Logger: &log,
	})
	reflector.RunWithContext(ctx)
}

// Relist ends the watch and lists the pods again. A server that was restored from a backup reuses resource
// versions. It refuses a watch from a version that it has yet to reach, and the pods are then listed again
// without this call; but an open watch delivers nothing until the server reaches that version.
func (a *API) Relist() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.relist != nil {
		a.log.Info("pods are listed again")
		a.relist()
	}
}

// HasSynced reports whether the first list of the API's pods was handled.
func (a *API) HasSynced() bool { return a.known.synced.Load() }

// Err returns the error of the last list or watch request, nil if it succeeded.
func (a *API) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// answered records the outcome of a request, and logs when that changes.
func (a *API) answered(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil {
		return // the request was canceled by us
	}
	a.mu.Lock()
	before := a.err
	a.err = nil
	if err != nil {
		a.err = fmt.Errorf("source: %s pods of node %s: %w", verb, a.node, err)
	}
	a.mu.Unlock()

	switch {
	case err != nil && before == nil:
		a.log.Warn("pod watch failed, retrying", "err", err)
	case err == nil && before != nil:
		a.log.Info("pod watch restored")
	}
}

// apiStore turns what the reflector stores into changes.
type apiStore struct{ known *known }

func (s apiStore) Add(obj any) error { return s.Update(obj) }

func (s apiStore) Update(obj any) error {
	pod, err := asPod(obj)
	if err != nil {
		return err
	}
	s.known.update(pod)
	return nil
}

func (s apiStore) Delete(obj any) error {
	pod, err := asPod(obj)
	if err != nil {
		return err
	}
	s.known.remove(pod)
	return nil
}

func (s apiStore) Replace(objs []any, _ string) error {
	pods := make([]*v1.Pod, 0, len(objs))
	for _, obj := range objs {
		pod, err := asPod(obj)
		if err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	s.known.replace(pods, func(old, new *v1.Pod) bool { return old.ResourceVersion == new.ResourceVersion })
	return nil
}

// Resync has nothing to repeat: consumers keep the pods of the changes they get.
func (s apiStore) Resync() error { return nil }

func asPod(obj any) (*v1.Pod, error) {
	if pod, ok := obj.(*v1.Pod); ok {
		return fromAPI(pod), nil
	}
	return nil, fmt.Errorf("source: the API sent a %T instead of a pod", obj)
}

// fromAPI returns a pod of the API with its true source. Every user may set the source
// annotation; a pod that claims to be static would not be written to, nor deleted from the
// API. A mirror keeps the annotation, which it has from its static pod. The pod that is
// passed in is not changed.
func fromAPI(pod *v1.Pod) *v1.Pod {
	claimed, ok := pod.Annotations[podstatus.SourceAnnotation]
	if !ok || Origin(claimed) == FromAPI || podstatus.IsMirror(pod) {
		return pod
	}
	corrected := *pod
	corrected.Annotations = maps.Clone(pod.Annotations)
	corrected.Annotations[podstatus.SourceAnnotation] = string(FromAPI)
	return &corrected
}
