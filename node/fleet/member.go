package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/status"
)

// Node is a node of a [Fleet].
type Node struct {
	f      *Fleet
	name   string
	keep   *node.Node
	client podClient
	own    bool        // the node has its own client
	pods   *source.API // its own watch, which runs if the shared watch does not serve the node
	inbox  inbox

	running sync.WaitGroup
	// Fleet.mu guards what follows.
	ctx      context.Context
	stop     context.CancelFunc
	watching bool
	leaving  bool
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.name }

// Keeper returns the keeper of the Node object and its lease.
func (n *Node) Keeper() *node.Node { return n.keep }

// Pods returns the newest copies of the node's pods. They must not be modified.
func (n *Node) Pods() []*v1.Pod {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	return n.f.podsOf(n.name)
}

func newPodClient(core corev1.CoreV1Interface, name string) (podClient, error) {
	client, ok := status.NewClient(core, name).(podClient)
	if !ok {
		return nil, errors.New("fleet: the client is a fake that makes no requests; statustest.Server.Config makes a client for tests")
	}
	return client, nil
}

func (f *Fleet) newNode(o NodeOptions) (*Node, error) {
	if o.Handler == nil {
		return nil, fmt.Errorf("fleet: node %s has no Handler", o.Name)
	}
	n := &Node{f: f, name: o.Name, own: o.Client != nil}
	if o.Leases == nil && !n.own {
		o.Leases = f.o.Leases
	}
	if !n.own {
		o.Client = f.o.Client
		o.Watched = func() *v1.Node { return f.allNodes.get(o.Name) }
	}
	o.Turn, o.LeaseTurn = f.nodeTurns.take, f.leaseTurns.take
	if o.Read == nil {
		o.Read = f.machine.read
	}
	if o.Logger == nil {
		o.Logger = f.log
	}
	var err error
	if n.keep, err = node.New(o.Options); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if n.client, err = newPodClient(o.Client.CoreV1(), o.Name); err != nil {
		return nil, err
	}
	n.pods, err = source.NewAPI(source.APIOptions{Client: o.Client, NodeName: o.Name, Handle: n.handle, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	n.inbox = inbox{handler: o.Handler, log: o.Logger.With("node", o.Name), latest: make(map[types.UID]delivery)}
	return n, nil
}

// handle takes a change of the node's own watch.
func (n *Node) handle(c source.Change) {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	if n.f.nodes[n.name] != n {
		return
	}
	n.f.take(c, func(of *Node) bool { return of == n })
}

// delivery is a pod that waits for its handler.
type delivery struct {
	pod  *v1.Pod
	gone bool
}

// inbox passes pods to the handler of a node, one at a time and the newest copy of each. A goroutine runs while the inbox has
// pods.
type inbox struct {
	handler Handler
	log     *slog.Logger

	mu      sync.Mutex
	ctx     context.Context // of the node; nil: its node does not run yet
	order   []types.UID
	latest  map[types.UID]delivery
	running bool
}

func (b *inbox) open(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx = ctx
	b.wake()
}

func (b *inbox) add(pod *v1.Pod, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.latest[pod.UID]; !waits {
		b.order = append(b.order, pod.UID)
	}
	b.latest[pod.UID] = delivery{pod, gone}
	b.wake()
}

// wake starts the goroutine if there is something to do. The caller holds mu.
func (b *inbox) wake() {
	if b.ctx != nil && !b.running && len(b.order) > 0 {
		b.running = true
		go b.drain()
	}
}

func (b *inbox) drain() {
	for {
		b.mu.Lock()
		if len(b.order) == 0 || b.ctx.Err() != nil {
			b.running, b.order = false, nil
			clear(b.latest)
			b.mu.Unlock()
			return
		}
		next := b.latest[b.order[0]]
		delete(b.latest, b.order[0])
		b.order = b.order[1:]
		b.mu.Unlock()
		b.call(next)
	}
}

// call calls the handler. A panic is the failure of one call.
func (b *inbox) call(d delivery) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("a handler has panicked", "pod", d.pod.Namespace+"/"+d.pod.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if d.gone {
		b.handler.ForgetPod(b.ctx, d.pod)
	} else {
		b.handler.SyncPod(b.ctx, d.pod)
	}
}
