package node

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/internal/wake"
)

// follower is the store of a reflector of one Node. It records a cordon at once: a Node that is cordoned and deleted
// between two reads would otherwise come back schedulable.
type follower struct{ node *Node }

// follows reports whether follow must watch the Node: its Memory has a CordonFile, and the program does
// not watch the Node.
func (n *Node) follows() bool {
	return n.o.Watched == nil && n.o.Memory != nil && n.o.Memory.CordonFile != ""
}

// follow watches the Node until ctx ends.
func (n *Node) follow(ctx context.Context) {
	nodes, selector := n.o.Client.CoreV1().Nodes(), fields.OneTermEqualSelector(metav1.ObjectNameField, n.o.Name).String()
	from := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return nodes.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return nodes.Watch(ctx, o)
		},
	}, n.o.Client)
	log := logr.FromSlogHandler(n.log.Handler())
	reflector := cache.NewReflectorWithOptions(from, &v1.Node{}, follower{n}, cache.ReflectorOptions{Name: "node " + n.o.Name, Logger: &log})
	reflector.RunWithContext(logr.NewContext(ctx, log))
}

// Add is called by the reflector, as are the methods below.
func (f follower) Add(object any) error { return f.Update(object) }

// Update records the cordon of a Node.
func (f follower) Update(object any) error {
	node, ok := object.(*v1.Node)
	if !ok {
		return fmt.Errorf("node: the API sent a %T instead of a node", object)
	}
	f.node.followed.Store(true)
	f.node.noteCordon(node)
	if node.Spec.Unschedulable != f.node.wasClosed() {
		wake.Up(f.node.look)
	}
	return nil
}

// Delete is called with the last state of the Node.
func (f follower) Delete(object any) error {
	defer wake.Up(f.node.look)
	return f.Update(object)
}

// Replace is called without a Node if the API has none: the recorded cordon stays then.
func (f follower) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if err := f.Update(object); err != nil {
			return err
		}
	}
	return nil
}

// Resync has nothing to repeat.
func (f follower) Resync() error { return nil }

// noteCordon records whether the Node is unschedulable.
func (n *Node) noteCordon(node *v1.Node) {
	if err := n.o.Memory.noteCordon(node.Spec.Unschedulable); err != nil {
		n.log.Warn("cordon not remembered: the node would come back schedulable if its Node were deleted", "err", err)
	}
}

// wasClosed reports whether the Node was unschedulable when last read.
func (n *Node) wasClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current != nil && n.current.Spec.Unschedulable
}
