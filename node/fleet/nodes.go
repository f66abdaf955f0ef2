package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// nodeWatch holds the newest copies of the fleet's Nodes. Without the right to watch Nodes it stays empty.
type nodeWatch struct {
	log  *slog.Logger
	has  func(name string) bool // whether a node is one of the fleet
	from cache.ListerWatcher

	mu    sync.Mutex // guards nodes
	nodes map[string]*v1.Node
}

func newNodeWatch(client kubernetes.Interface, log *slog.Logger, has func(string) bool) *nodeWatch {
	nodes := client.CoreV1().Nodes()
	return &nodeWatch{
		log: log, has: has, nodes: make(map[string]*v1.Node),
		from: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return nodes.Watch(ctx, o)
			},
		}, client),
	}
}

// run follows the Nodes until ctx ends.
func (w *nodeWatch) run(ctx context.Context) {
	log := logr.FromSlogHandler(w.log.Handler())
	reflector := cache.NewReflectorWithOptions(w.from, &v1.Node{}, w, cache.ReflectorOptions{Name: "nodes of the fleet", Logger: &log})
	reflector.RunWithContext(logr.NewContext(ctx, log))
}

// get returns the newest copy of a Node, or nil if unknown.
func (w *nodeWatch) get(name string) *v1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name]
}

func (w *nodeWatch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodes, name)
}

// Add is called by the reflector, as are the methods below.
func (w *nodeWatch) Add(object any) error { return w.Update(object) }

func (w *nodeWatch) Update(object any) error {
	node, err := asNode(object)
	if err != nil || !w.has(node.Name) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[node.Name] = slim(node)
	return nil
}

func (w *nodeWatch) Delete(object any) error {
	node, err := asNode(object)
	if err == nil {
		w.forget(node.Name)
	}
	return err
}

func (w *nodeWatch) Replace(objects []any, _ string) error {
	next := make(map[string]*v1.Node)
	for _, object := range objects {
		node, err := asNode(object)
		if err != nil {
			return err
		}
		if w.has(node.Name) {
			next[node.Name] = slim(node)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = next
	return nil
}

// Resync has nothing to repeat.
func (w *nodeWatch) Resync() error { return nil }

// slim removes the fields of a Node that its keeper does not read.
func slim(node *v1.Node) *v1.Node {
	node.ManagedFields = nil
	return node
}

func asNode(object any) (*v1.Node, error) {
	if node, ok := object.(*v1.Node); ok {
		return node, nil
	}
	return nil, fmt.Errorf("fleet: the API sent a %T instead of a Node", object)
}
