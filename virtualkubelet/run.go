package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/node/volume/apiobjects"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/status"
)

// deliverPatience is how long Run delivers what the API server does not have yet when it ends.
const deliverPatience = 10 * time.Second

// Run runs a node until ctx ends: it registers the Node, renews its lease, passes pods to the provider and their statuses to
// the API server, and serves the kubelet's API. Then Run delivers the remaining statuses for up to 10 s and returns; pods
// keep running at the provider. Run returns an error for invalid options or a failing listener.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	o.setDefaults()
	k, err := newKubelet(o, nodeClient(&o))
	if err != nil {
		return err
	}
	k.objects = apiobjects.New(o.Client, o.Logger)
	api, err := source.NewAPI(source.APIOptions{Client: o.Client, NodeName: o.NodeName, Handle: k.handle, Logger: o.Logger})
	if err != nil {
		return err
	}
	k.relist = api.Relist
	events := process.NewEvents(o.NodeName, o.Client, o.Logger)
	k.event = events.Event
	object := &nodeObject{kubelet: k, said: make(chan struct{}, 1)}
	keeper, err := object.keeper(ctx, events)
	if err != nil {
		return err
	}
	k.hostIPs = object.addresses
	k.changed = func() { wake.Up(object.said) }
	server, err := k.server()
	if err != nil {
		return err
	}
	k.warnOfSignatures()
	parts := []func(context.Context) error{api.Run, events.Run, keeper.Run, object.ping, k.run}
	if server != nil {
		parts = append(parts, server.Run)
	}
	return k.runParts(ctx, parts)
}

func nodeClient(o *Options) status.Client {
	return status.NewClient(o.Client.CoreV1(), o.NodeName)
}

// runParts runs the parts and the manager until ctx ends or a part fails. The manager ends last.
func (k *kubelet) runParts(ctx context.Context, parts []func(context.Context) error) error {
	managed, whole := make(chan error, 1), context.WithoutCancel(ctx)
	go func() { managed <- k.manager.Run(whole) }() // until Shutdown
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}
	running.Wait()
	deadline, stop := context.WithTimeout(whole, deliverPatience)
	defer stop()
	if err := k.manager.Shutdown(deadline); err != nil {
		k.log.Warn("statuses were not delivered before the end", "err", err)
	}
	return errors.Join(append(errs, <-managed)...)
}

// warnOfSignatures names methods of the provider that have the right name and another signature, which would be ignored silently.
//
// The names are constants at each call: with MethodByName of a variable the linker keeps all methods of all types, which are 20 MB.
func (k *kubelet) warnOfSignatures() {
	p := k.options.Provider
	t := reflect.TypeOf(p)
	warn := func(method reflect.Method, has, fits bool) {
		if has && !fits {
			k.log.Warn("a method of the provider is not used: its signature differs; docs/use/providers.md shows the expected one", "method", method.Name)
		}
	}
	method, has := t.MethodByName("NotifyPods")
	warn(method, has, is[PodNotifier](p))
	method, has = t.MethodByName("Ping")
	warn(method, has, is[NodeProvider](p))
	method, has = t.MethodByName("NotifyNodeStatus")
	warn(method, has, is[NodeProvider](p))
	method, has = t.MethodByName("ConfigureNode")
	warn(method, has, is[NodeConfigurer](p))
	method, has = t.MethodByName("GetContainerLogs")
	warn(method, has, is[LogReader](p))
	method, has = t.MethodByName("RunInContainer")
	warn(method, has, is[Executor](p))
	method, has = t.MethodByName("AttachToContainer")
	warn(method, has, is[Attacher](p))
	method, has = t.MethodByName("PortForward")
	warn(method, has, is[PortForwarder](p))
	method, has = t.MethodByName("GetStatsSummary")
	warn(method, has, is[StatsReader](p))
}

func is[T any](provider Provider) bool {
	_, ok := provider.(T)
	return ok
}

// nodeObject is the Node of a provider.
type nodeObject struct {
	*kubelet
	keep *node.Node
	said chan struct{} // capacity 1: the provider has reported a change of its Node
	// pinging receives the result of the current Ping; nil without a Ping. Only the goroutine of ping uses it.
	pinging chan error

	mu         sync.Mutex // guards what follows
	configured *v1.Node   // what ConfigureNode made of an empty Node
	notified   *v1.Node   // what the provider has said last
	pingErr    error
}

func (n *nodeObject) keeper(ctx context.Context, events *process.Events) (_ *node.Node, err error) {
	o := &n.options
	if configurer, ok := o.Provider.(NodeConfigurer); ok {
		blank := &v1.Node{}
		blank.Name, blank.Labels, blank.Annotations = o.NodeName, map[string]string{}, map[string]string{}
		if err := n.calls.do(ctx, "ConfigureNode", "", func(ctx context.Context) error { configurer.ConfigureNode(ctx, blank); return nil }); err != nil {
			return nil, fmt.Errorf("virtualkubelet: %w", err)
		}
		n.configured = blank.DeepCopy()
	}
	options := node.Options{
		Client: o.Client, Name: o.NodeName, Taints: o.Taints, Addresses: o.Addresses, Version: o.Version,
		RuntimeVersion: "virtualkubelet://v1", Ready: n.notReady, Configure: n.configure, Event: events.NodeEvent, Logger: o.Logger,
		Pressure: func() []v1.NodeConditionType { return nil }, // the pods do not use this machine
	}
	if o.Listener != nil {
		if address, ok := o.Listener.Addr().(*net.TCPAddr); ok {
			options.Port = int32(address.Port)
		}
	}
	n.keep, err = node.New(options)
	return n.keep, err
}

// configure puts what provider and program say over what is known of the machine.
func (n *nodeObject) configure(object *v1.Node) {
	n.mu.Lock()
	configured, notified := n.configured, n.notified
	n.mu.Unlock()
	overlay(object, configured)
	overlay(object, notified)
	if n.options.Configure != nil {
		n.options.Configure(object)
	}
}

// overlay replaces what said has.
func overlay(object, said *v1.Node) {
	if said == nil {
		return
	}
	said = said.DeepCopy()
	for key, value := range said.Labels {
		object.Labels[key] = value
	}
	for key, value := range said.Annotations {
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		object.Annotations[key] = value
	}
	if said.Spec.ProviderID != "" {
		object.Spec.ProviderID = said.Spec.ProviderID
	}
	object.Spec.Taints = append(object.Spec.Taints, said.Spec.Taints...)
	if len(said.Status.Capacity) > 0 {
		object.Status.Capacity, object.Status.Allocatable = said.Status.Capacity, said.Status.Capacity.DeepCopy()
	}
	if len(said.Status.Allocatable) > 0 {
		object.Status.Allocatable = said.Status.Allocatable
	}
	if len(said.Status.Addresses) > 0 {
		object.Status.Addresses = said.Status.Addresses
	}
	info, is := &object.Status.NodeInfo, said.Status.NodeInfo
	for _, field := range []struct {
		to   *string
		from string
	}{
		{&info.OperatingSystem, is.OperatingSystem}, {&info.Architecture, is.Architecture}, {&info.OSImage, is.OSImage},
		{&info.KernelVersion, is.KernelVersion}, {&info.ContainerRuntimeVersion, is.ContainerRuntimeVersion}, {&info.KubeletVersion, is.KubeletVersion},
	} {
		if field.from != "" {
			*field.to = field.from
		}
	}
	if is.OperatingSystem != "" {
		object.Labels[v1.LabelOSStable] = is.OperatingSystem
	}
	if is.Architecture != "" {
		object.Labels[v1.LabelArchStable] = is.Architecture
	}
	for _, c := range said.Status.Conditions {
		ours := false
		for i := range object.Status.Conditions {
			// Ready is what Ping and the watch say; a provider that is not ready is believed.
			if old := &object.Status.Conditions[i]; old.Type == c.Type {
				if ours = true; c.Type != v1.NodeReady || c.Status != v1.ConditionTrue {
					*old = c
				}
			}
		}
		if !ours {
			object.Status.Conditions = append(object.Status.Conditions, c)
		}
	}
}

func (n *nodeObject) addresses() (ips []string) {
	if len(n.options.Addresses) > 0 {
		return n.options.Addresses
	}
	if current := n.keep.Current(); current != nil {
		for _, a := range current.Status.Addresses {
			if a.Type == v1.NodeInternalIP {
				ips = append(ips, a.Address)
			}
		}
	}
	return ips
}

func (n *nodeObject) notReady() error {
	n.kubelet.mu.Lock()
	unknown := n.unknown
	n.kubelet.mu.Unlock()
	if unknown != nil {
		return unknown
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pingErr
}

// pingInterval is how often the provider is asked whether it works.
const pingInterval = 10 * time.Second

// ping asks the provider whether it works until ctx ends, and reports the Node when something has changed.
func (n *nodeObject) ping(ctx context.Context) error {
	provider, ok := n.options.Provider.(NodeProvider)
	if !ok {
		n.reportUntil(ctx, nil)
		return nil
	}
	err := n.calls.do(ctx, "NotifyNodeStatus", "", func(context.Context) error {
		provider.NotifyNodeStatus(ctx, func(said *v1.Node) {
			said = said.DeepCopy()
			n.mu.Lock()
			n.notified = said
			n.mu.Unlock()
			wake.Up(n.said)
		})
		return nil
	})
	if err != nil {
		n.log.Warn("the provider does not report its node", "err", err)
	}
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		err := n.askPing(ctx, provider)
		if ctx.Err() != nil {
			return nil
		}
		n.mu.Lock()
		changed := (err == nil) != (n.pingErr == nil)
		if n.pingErr = nil; err != nil {
			n.pingErr = fmt.Errorf("the provider does not work: %w", err)
		}
		n.mu.Unlock()
		if changed {
			_ = n.keep.Report(ctx) // the keeper tries again
		}
		n.reportUntil(ctx, tick.C)
	}
}

// reportUntil reports the Node each time that something has changed, until a tick or the end of ctx.
func (n *nodeObject) reportUntil(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-tick:
			return
		case <-n.said:
			_ = n.keep.Report(ctx) // the keeper tries again
		case <-ctx.Done():
			return
		}
	}
}

// askPing waits for a Ping for at most its interval. While a call hangs there is no second one, since each would leave a goroutine.
func (n *nodeObject) askPing(ctx context.Context, provider NodeProvider) error {
	if n.pinging == nil {
		answer := make(chan error, 1) // so that a call which is not waited for ends
		n.pinging = answer
		go func() {
			answer <- n.calls.do(ctx, "Ping", "", func(ctx context.Context) error {
				bounded, cancel := context.WithTimeout(ctx, pingInterval)
				defer cancel()
				return provider.Ping(bounded)
			})
		}()
	}
	late := time.NewTimer(pingInterval)
	defer late.Stop()
	select {
	case err := <-n.pinging:
		n.pinging = nil
		return err
	case <-late.C:
		return errors.New("the provider's Ping has not returned")
	case <-ctx.Done():
		return <-n.pinging // within stopPatience
	}
}
