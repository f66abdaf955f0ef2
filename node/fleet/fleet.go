package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/podapi"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/status"
)

// deliverPatience is how long Run delivers what the API server does not have yet when it ends.
const deliverPatience = 10 * time.Second

// Fleet runs many nodes. Create a Fleet with [New]; see the package comment.
type Fleet struct {
	o       Options
	log     *slog.Logger
	manager *status.Manager
	client  podClient // for pods of unknown nodes
	machine machine
	// Requests in flight for the Nodes and leases of all nodes.
	nodeTurns, leaseTurns turns

	all      *source.API // of the pods of all nodes
	allNodes *nodeWatch

	// mu guards what follows.
	mu      sync.Mutex
	nodes   map[string]*Node
	pods    map[types.NamespacedName]*v1.Pod // the newest copy of each pod that a watch has delivered
	ctx     context.Context                  // of Run, nil before
	ended   bool
	perNode bool          // the pods of each node are watched by themselves
	listed  chan struct{} // closed once the pods of all nodes are listed, or are watched node by node
	running sync.WaitGroup
}

// How many requests for Nodes and for leases may be in flight at once.
const (
	nodeSlots  = 32
	leaseSlots = 64
)

// New returns a fleet without nodes. New starts nothing: see [Fleet.Run].
func New(o Options) (*Fleet, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.setDefaults()
	f := &Fleet{
		o: o, log: o.Logger, nodes: make(map[string]*Node), pods: make(map[types.NamespacedName]*v1.Pod),
		listed: make(chan struct{}), nodeTurns: make(turns, nodeSlots), leaseTurns: make(turns, leaseSlots), perNode: o.WatchPerNode,
	}
	client, err := newPodClient(o.Client.CoreV1(), "-") // no node has this name
	if err != nil {
		return nil, err
	}
	f.client = client
	options := status.Options{
		Client: router{f}, Journal: keeping(o.Journal), Workers: o.Workers, QPS: o.QPS, Burst: o.Burst, CompleteReports: o.CompleteReports,
		Share: func(pod *v1.Pod) string { return pod.Spec.NodeName }, HistoryChanged: func() { go f.relist() }, Logger: o.Logger, Registerer: o.Registerer,
	}
	if o.Configure != nil {
		o.Configure(&options)
	}
	if f.manager, err = status.New(options); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	f.all, err = source.NewAPI(source.APIOptions{Client: o.Client, AllNodes: true, Handle: f.handle, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	f.allNodes = newNodeWatch(o.Client, o.Logger, f.has)
	return f, nil
}

// Manager returns the manager that reports the pods of all nodes.
func (f *Fleet) Manager() *status.Manager { return f.manager }

// Run runs the nodes until ctx ends, then delivers the remaining statuses for up to 10 s and returns nil. Run may be called
// once.
func (f *Fleet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	if f.ctx != nil || f.ended {
		f.mu.Unlock()
		return errors.New("fleet: Run may be called only once")
	}
	f.ctx = ctx
	for _, n := range f.nodes {
		f.start(n)
	}
	perNode := f.perNode
	f.mu.Unlock()

	managed := make(chan error, 1)
	go func() { managed <- f.manager.Run(context.WithoutCancel(ctx)) }() // until Shutdown
	f.running.Go(func() {
		if f.mayListNodes(ctx) {
			f.allNodes.run(ctx)
		}
	})
	if !perNode && f.mayListPods(ctx) {
		_ = f.all.Run(ctx) // until ctx ends; its result is nil
	} else {
		f.watchPerNode()
		<-ctx.Done()
	}
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.running.Wait()
	deadline, stop := context.WithTimeout(context.WithoutCancel(ctx), deliverPatience)
	defer stop()
	if err := f.manager.Shutdown(deadline); err != nil {
		f.log.Warn("statuses were not delivered before the end", "err", err)
	}
	return <-managed
}

// mayListPods and mayListNodes check with the API server whether the client may list the pods of all nodes, and
// Nodes.
func (f *Fleet) mayListPods(ctx context.Context) bool {
	return f.may(ctx, "pods are watched node by node: the client may not list all pods", func(ctx context.Context, o metav1.ListOptions) error {
		o.FieldSelector = podapi.Bound()
		_, err := f.o.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		return err
	})
}

func (f *Fleet) mayListNodes(ctx context.Context) bool {
	return f.may(ctx, "each Node is read by itself: the client may not list Nodes", func(ctx context.Context, o metav1.ListOptions) error {
		_, err := f.o.Client.CoreV1().Nodes().List(ctx, o)
		return err
	})
}

// may retries until the server responds. If the request is not allowed, may logs the consequence.
func (f *Fleet) may(ctx context.Context, otherwise string, list func(context.Context, metav1.ListOptions) error) bool {
	schedule := backoff.Schedule{First: 200 * time.Millisecond, Limit: 10 * time.Second}
	for attempt := 1; ; attempt++ {
		asked, cancel := context.WithTimeout(ctx, requestTimeout)
		err := list(asked, metav1.ListOptions{Limit: 1}) // with resource version 0 the server would ignore the limit
		cancel()
		if err == nil {
			return true
		}
		if apierrors.IsForbidden(err) {
			f.log.Info(otherwise, "err", err)
			return false
		}
		f.log.Warn("first list of the fleet failed, retrying", "attempt", attempt, "err", err)
		if !backoff.Sleep(ctx, schedule.Random(attempt)) {
			return false
		}
	}
}

// requestTimeout ends a request that gets no answer.
const requestTimeout = 10 * time.Second

// watchPerNode starts separate watches of the pods of each node.
func (f *Fleet) watchPerNode() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perNode = true
	for _, n := range f.nodes {
		f.startWatch(n)
	}
	f.setListed()
}

// Add adds a node, before or during Run. Once Run runs, the Node is registered and its pods are passed to the handler.
func (f *Fleet) Add(o NodeOptions) (*Node, error) {
	n, err := f.newNode(o)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[n.name] != nil {
		return nil, fmt.Errorf("fleet: node %s is part of the fleet already", n.name)
	}
	if f.ended {
		return nil, errors.New("fleet: Run has ended")
	}
	f.nodes[n.name] = n
	// Under the lock: no change of these pods is handled meanwhile.
	for _, pod := range f.podsOf(n.name) {
		f.manager.ObservePod(pod)
		n.inbox.add(pod, false)
	}
	if f.ctx != nil {
		f.start(n)
	}
	return n, nil
}

// start starts the goroutines of a node. The caller holds mu.
func (f *Fleet) start(n *Node) {
	n.ctx, n.stop = context.WithCancel(f.ctx)
	n.running.Go(func() { _ = n.keep.Run(n.ctx) }) // which is called once
	f.running.Go(n.running.Wait)
	if f.perNode || n.own {
		f.startWatch(n)
	}
	n.inbox.open(n.ctx)
}

// startWatch starts the watch of a node's pods, unless it has begun. The caller holds mu.
func (f *Fleet) startWatch(n *Node) {
	if n.ctx == nil || n.watching {
		return
	}
	n.watching = true
	n.running.Go(func() { _ = n.pods.Run(n.ctx) }) // its result is nil
}

// Remove removes a node from the fleet: its pods are no longer reported, and its Node and lease are left unchanged. Before that,
// Remove waits until the API server has the reported statuses of the pods. If ctx ends first, Remove removes the node and returns the
// error of ctx.
func (f *Fleet) Remove(ctx context.Context, name string) error {
	f.mu.Lock()
	n := f.nodes[name]
	if n == nil || n.leaving {
		f.mu.Unlock()
		return fmt.Errorf("fleet: no node %s", name)
	}
	n.leaving = true
	f.mu.Unlock()

	err := f.awaitDelivery(ctx, name)
	f.mu.Lock()
	delete(f.nodes, name)
	for _, pod := range f.podsOf(name) {
		f.manager.ObserveDelete(pod)
		if f.perNode { // nothing would remove it
			delete(f.pods, nameOf(pod))
		}
	}
	stop := n.stop
	f.mu.Unlock()
	f.allNodes.forget(name)
	if stop != nil {
		stop()
		n.running.Wait()
	}
	return err
}

// awaitDelivery waits until no pod of the node is pending.
func (f *Fleet) awaitDelivery(ctx context.Context, name string) error {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		f.mu.Lock()
		pods := f.podsOf(name)
		f.mu.Unlock()
		if !slices.ContainsFunc(pods, func(pod *v1.Pod) bool {
			delivery, known := f.manager.Delivery(pod.UID)
			return known && delivery.Version != delivery.Accepted
		}) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("fleet: remove node %s: %w", name, ctx.Err())
		case <-look.C:
		}
	}
}

// Node returns the node of this name, or nil.
func (f *Fleet) Node(name string) *Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[name]
}

// Nodes returns the nodes, by name.
func (f *Fleet) Nodes() []*Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	nodes := make([]*Node, 0, len(f.nodes))
	for _, n := range f.nodes {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.name, b.name) })
	return nodes
}

// Pods returns the newest copies of the pods of all nodes, by node. They must not be modified.
func (f *Fleet) Pods() map[string][]*v1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	pods := make(map[string][]*v1.Pod, len(f.nodes))
	for _, pod := range f.pods {
		if f.nodes[pod.Spec.NodeName] != nil {
			pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], pod)
		}
	}
	return pods
}

func (f *Fleet) has(name string) bool { return f.Node(name) != nil }

// podsOf returns the pods that the watches have delivered of a node. The caller holds mu.
func (f *Fleet) podsOf(name string) (pods []*v1.Pod) {
	for _, pod := range f.pods {
		if pod.Spec.NodeName == name {
			pods = append(pods, pod)
		}
	}
	return pods
}

// nodeOf returns the node of the fleet that a pod is bound to, or nil if unknown.
func (f *Fleet) nodeOf(namespace, name string) *Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	if pod := f.pods[types.NamespacedName{Namespace: namespace, Name: name}]; pod != nil {
		return f.nodes[pod.Spec.NodeName]
	}
	return nil
}

func (f *Fleet) seesAllPods() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.perNode
}

// findPod looks up a pod in the server's storage.
func (f *Fleet) findPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	found, err := f.o.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("fleet: list pods of the name: %w", err)
	}
	if found.ResourceVersion == "" {
		return nil, errors.New("fleet: the answer is not a list of pods: it has no resource version")
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	return &found.Items[0], nil
}

// awaitPods waits until the pods of all nodes are listed.
func (f *Fleet) awaitPods(ctx context.Context) error {
	select {
	case <-f.listed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("fleet: the pods are not listed yet: %w", ctx.Err())
	}
}

// setListed notes that the pods are listed. The caller holds mu.
func (f *Fleet) setListed() {
	select {
	case <-f.listed:
	default:
		close(f.listed)
	}
}

// relist lists the pods again, after the server was restored from a backup.
func (f *Fleet) relist() {
	f.all.Relist()
	for _, n := range f.Nodes() {
		n.pods.Relist()
	}
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// handle takes a change of the pods of all nodes.
func (f *Fleet) handle(c source.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.take(c, func(n *Node) bool { return !n.own })
	if c.Op == source.Set {
		f.setListed()
	}
}

// take takes a change of pods for the nodes that are served by the watch that it comes from. The caller holds mu.
func (f *Fleet) take(c source.Change, serves func(*Node) bool) {
	for _, pod := range c.Pods {
		n := f.nodes[pod.Spec.NodeName]
		key := nameOf(pod)
		if n != nil && !serves(n) {
			if c.Op != source.Remove && f.pods[key] == nil {
				f.pods[key] = pod // until the node's own watch has it, and if the node is removed
			}
			continue
		}
		if c.Op != source.Remove {
			if before := f.pods[key]; before != nil && before.UID != pod.UID { // its deletion was not seen
				f.gone(before)
			}
			f.pods[key] = pod
			if n != nil {
				f.manager.ObservePod(pod)
				n.inbox.add(pod, false)
			}
			continue
		}
		if before := f.pods[key]; before != nil && before.UID == pod.UID {
			delete(f.pods, key)
		}
		f.gone(pod)
	}
}

// gone handles that the API no longer has a pod. The caller holds mu.
func (f *Fleet) gone(pod *v1.Pod) {
	if n := f.nodes[pod.Spec.NodeName]; n != nil {
		f.manager.ObserveDelete(pod)
		n.inbox.add(pod, true)
	}
}

// machine is what the machine of this process reports, read once for all nodes.
type machine struct {
	mu      sync.Mutex
	at      time.Time
	reading node.Reading
	err     error
}

func (m *machine) read() (node.Reading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || time.Since(m.at) >= 10*time.Second {
		m.reading, m.err = node.ReadMachine("/")
		m.at = time.Now()
	}
	return m.reading, m.err
}
