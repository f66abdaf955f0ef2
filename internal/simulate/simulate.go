package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/node/fleet"
	"github.com/statusd/statusd/status"
)

// Options of a [Simulation]. Client, Nodes and Prefix are required.
type Options struct {
	// Client and Leases reach the API server, see [fleet.Clients].
	Client, Leases kubernetes.Interface
	// Nodes is the number of nodes, named PREFIX0, PREFIX1 and so on.
	Nodes  int
	Prefix string
	// Script is the script; nil: only Otherwise, the behavior of pods that match no rule.
	Script    *Script
	Otherwise Behavior
	// Seed decides about all that is random.
	Seed int64
	// Version is shown as part of the version of the nodes.
	Version string

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Simulation is a simulated cluster.
type Simulation struct {
	o     Options
	fleet *fleet.Fleet
	nodes []*simulatedNode
}

// simulatedNode is a node of a simulation. Its pods stay as they are while the node is silent.
type simulatedNode struct {
	name string
	pods *pods

	mu       sync.Mutex // guards notReady
	notReady error
}

// New returns a simulation. New starts nothing: see [Simulation.Run].
func New(o Options) (*Simulation, error) {
	if o.Nodes <= 0 || o.Prefix == "" {
		return nil, errors.New("simulate: want a number of nodes and a prefix of their names")
	}
	if o.Script == nil {
		o.Script = &Script{}
	}
	if err := o.Script.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Simulation{o: o}
	var err error
	s.fleet, err = fleet.New(fleet.Options{Client: o.Client, Leases: o.Leases, Logger: o.Logger, Registerer: o.Registerer})
	if err != nil {
		return nil, err
	}
	for i := range o.Nodes {
		n := &simulatedNode{name: fmt.Sprint(o.Prefix, i), pods: &pods{s: s, pods: make(map[types.UID]*pod)}}
		s.nodes = append(s.nodes, n)
		if err := s.add(n); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Fleet returns the fleet of the simulation.
func (s *Simulation) Fleet() *fleet.Fleet { return s.fleet }

func (s *Simulation) manager() *status.Manager { return s.fleet.Manager() }

func (s *Simulation) add(n *simulatedNode) error {
	capacity := s.o.Script.capacity()
	_, err := s.fleet.Add(fleet.NodeOptions{
		Handler: n.pods,
		Options: node.Options{
			Name: n.name, Labels: s.o.Script.Nodes.Labels, Taints: s.o.Script.Nodes.Taints, Version: s.o.Version, RuntimeVersion: RuntimeVersion,
			Read: reading, Ready: n.ready, Logger: s.o.Logger,
			Configure: func(object *v1.Node) { object.Status.Capacity, object.Status.Allocatable = capacity, capacity },
		},
	})
	return err
}

func (n *simulatedNode) ready() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.notReady
}

// reading is a healthy machine; the script defines its capacity.
func reading() (node.Reading, error) {
	return node.Reading{
		Addresses: []string{"198.51.100.1"}, OSImage: "simulated", KernelVersion: "0", CPUs: 1, MemoryTotal: 1 << 40, MemoryAvailable: 1 << 39,
		DiskTotal: 1 << 40, DiskAvailable: 1 << 39, PIDs: 1 << 20,
	}, nil
}

// Run runs the nodes and the script until ctx ends.
func (s *Simulation) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var events sync.WaitGroup
	for i := range s.o.Script.Outages {
		events.Go(func() { s.outage(ctx, i) })
	}
	for i := range s.o.Script.Evictions {
		events.Go(func() { s.eviction(ctx, &s.o.Script.Evictions[i]) })
	}
	err := s.fleet.Run(ctx)
	cancel()
	events.Wait()
	for _, n := range s.nodes {
		n.pods.stop()
	}
	return err
}

// outage takes nodes away and brings them back.
func (s *Simulation) outage(ctx context.Context, index int) {
	o := &s.o.Script.Outages[index]
	if !backoff.Sleep(ctx, time.Duration(o.At)) {
		return
	}
	var out []*simulatedNode
	for _, n := range s.nodes {
		if glob(o.Nodes, n.name) && o.Share.includes(draw(s.o.Seed, fmt.Sprint("outage", index), n.name)) {
			out = append(out, n)
		}
	}
	s.o.Logger.Info("outage begins", "kind", o.Kind, "nodes", len(out))
	s.each(ctx, out, func(ctx context.Context, n *simulatedNode) { s.take(ctx, n, o.Kind) })
	if o.For == 0 || !backoff.Sleep(ctx, time.Duration(o.For)) {
		return
	}
	s.o.Logger.Info("outage ends", "kind", o.Kind, "nodes", len(out))
	s.each(ctx, out, func(ctx context.Context, n *simulatedNode) { s.bringBack(ctx, n, o.Kind) })
}

// each calls act for the nodes, some at a time.
func (s *Simulation) each(ctx context.Context, nodes []*simulatedNode, act func(context.Context, *simulatedNode)) {
	var acting sync.WaitGroup
	defer acting.Wait()
	slots := make(chan struct{}, 32)
	for _, n := range nodes {
		slots <- struct{}{}
		acting.Go(func() {
			defer func() { <-slots }()
			act(ctx, n)
		})
	}
}

func (s *Simulation) take(ctx context.Context, n *simulatedNode, kind string) {
	if kind == Silent {
		now, cancel := context.WithCancel(ctx)
		cancel() // undelivered statuses are lost, as on a machine without power
		_ = s.fleet.Remove(now, n.name)
		return
	}
	n.setReady(errors.New("the script says so"))
	s.tell(ctx, n)
}

func (s *Simulation) bringBack(ctx context.Context, n *simulatedNode, kind string) {
	if kind == Silent {
		if err := s.add(n); err != nil {
			s.o.Logger.Warn("node not brought back", "node", n.name, "err", err)
		}
		return
	}
	n.setReady(nil)
	s.tell(ctx, n)
}

func (n *simulatedNode) setReady(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notReady = err
}

// tell reports the Node now.
func (s *Simulation) tell(ctx context.Context, n *simulatedNode) {
	if of := s.fleet.Node(n.name); of != nil {
		_ = of.Keeper().Report(ctx) // the keeper tries again
	}
}

// eviction evicts pods at its time.
func (s *Simulation) eviction(ctx context.Context, e *Eviction) {
	if !backoff.Sleep(ctx, time.Duration(e.At)) {
		return
	}
	message := e.Message
	if message == "" {
		message = "The node was low on resource: memory."
	}
	for _, n := range s.nodes {
		if !glob(e.Nodes, n.name) {
			continue
		}
		for _, p := range n.pods.matching(&e.Pods, s.o.Seed) {
			p.evict(message)
		}
	}
}

// address is a pod's, of the range for benchmarks (RFC 2544).
func (s *Simulation) address(of *v1.Pod) string {
	x := uint32(draw(s.o.Seed, "address", string(of.UID)) * (1 << 17))
	return fmt.Sprintf("198.%d.%d.%d", 18+x>>16, x>>8&0xff, x&0xff)
}

// SyncPod takes a pod that is new or has changed.
func (h *pods) SyncPod(_ context.Context, spec *v1.Pod) {
	h.mu.Lock()
	p, known := h.pods[spec.UID]
	if !known {
		p = &pod{s: h.s, spec: spec, behavior: h.s.behaviorOf(spec), next: nothing}
		h.pods[spec.UID] = p
	}
	h.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spec = spec
	_, reported := h.s.manager().GetPodStatus(spec.UID)
	switch {
	case spec.DeletionTimestamp != nil && !p.ended:
		if !known {
			p.resume(time.Now())
		}
		p.remove()
	case !known && (spec.Status.Phase == v1.PodSucceeded || spec.Status.Phase == v1.PodFailed):
		p.ended = true // before the simulation began
	case !known:
		if now := time.Now(); !p.resume(now) {
			p.begin(now)
		}
	case !reported: // the node was away
		p.report()
	}
	// Once: each request of the deletion is an observation, and to report and terminate again at each doubles the CPU of a deletion.
	if spec.DeletionTimestamp != nil && p.ended && (!p.removed || known && !reported) {
		p.stop(time.Now())
	}
}

// ForgetPod takes that a pod is gone.
func (h *pods) ForgetPod(_ context.Context, spec *v1.Pod) {
	h.mu.Lock()
	p := h.pods[spec.UID]
	delete(h.pods, spec.UID)
	h.mu.Unlock()
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
		p.wait()
	}
}

// matching returns the pods that match.
func (h *pods) matching(m *Match, seed int64) (list []*pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pods {
		p.mu.Lock()
		if m.matches(p.spec, seed) {
			list = append(list, p)
		}
		p.mu.Unlock()
	}
	return list
}

// stop stops the timers.
func (h *pods) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pods {
		p.mu.Lock()
		p.wait()
		p.mu.Unlock()
	}
}
