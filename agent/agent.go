package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/certs"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/node/mirror"
	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/node/probe"
	"github.com/statusd/statusd/internal/node/shutdown"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/node/volume/apiobjects"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/status"
)

// Agent is a whole node. See the package comment.
type Agent struct {
	config   Config
	options  Options
	nodeName string
	log      *slog.Logger
	metrics  Registry
	born     time.Time // when it was made

	// What is open, in this order. Nil: not (yet).
	life    process.Life
	front   *process.Front // of the endpoints; nil: not served
	journal *journal.Durable
	runtime runtime.Runtime
	kubelet kubeletAPI
	reloads atomic.Bool // another agent takes over in this process

	cluster
	machine    *addressBook
	table      *pods.Table
	dispatcher *dispatcher
	handle     func(source.Change) // the dispatcher's, one change at a time
	manager    *status.Manager
	events     *process.Events
	warnings   warnings
	logs       *lastLogs
	prober     *probe.Prober
	workers    *worker.Workers
	evictions  *eviction.Manager
	manifests  *source.Manifests // nil: none configured
	shutdown   *shutdown.Manager
}

// cluster has the parts of a node with an API server. On a standalone node all fields are nil or
// empty.
type cluster struct {
	client      kubernetes.Interface
	identified  chan struct{}       // closed once the client is known to be the node's
	credentials [sha256.Size]byte   // the digest of the client's credentials
	connection  *process.Connection // of the client, with its credentials
	apiServer   string              // its host and port, for containers
	objects     *apiobjects.Objects
	node        *node.Node
	api         *source.API
	mirrors     *mirror.Mirrors
}

// New creates an agent and opens its port, journal, runtime state and kubeconfig. New returns every
// error that can be detected before anything runs. New starts nothing: call [Agent.Run], or
// [Agent.Close] if the agent will not run.
func New(config Config, options Options) (*Agent, error) {
	if err := errors.Join(config.validate(options.RESTConfig != nil), options.Validate()); err != nil {
		return nil, err
	}
	name, err := config.nodeName()
	if err != nil {
		return nil, err
	}
	options.setDefaults(config)
	a := &Agent{config: config, options: options, nodeName: name, log: options.Logger, metrics: options.Metrics, born: time.Now()}
	a.life = process.Life{Name: "agent", Timeout: config.ShutdownTimeout, Supervisor: options.Supervisor, Alive: a.alive, Logger: a.log}
	a.machine = &addressBook{read: options.Machine, interval: options.machineInterval, log: a.log, changed: a.addressesChanged}
	a.kubelet.probes = prometheus.NewRegistry()
	if a.identified = make(chan struct{}); !a.isByFile() {
		close(a.identified)
	}
	if err := a.open(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := a.wire(); err != nil {
		return nil, errors.Join(fmt.Errorf("agent: %w", err), a.Close())
	}
	a.registerMetrics()
	return a, nil
}

// Address is the address of the health endpoints, or empty if they are not served.
func (a *Agent) Address() string { return a.front.Address() }

// ErrReload as the cause of the end of Run's context means that another agent takes over in this
// process: systemd gets RELOADING=1, not STOPPING=1.
var ErrReload = process.ErrReload

// Run runs the agent until ctx ends, then stops its parts in order within ShutdownTimeout, closes
// all open files and connections, and returns. Containers keep running. Run returns the errors of
// the parts and of stopping them. Run may be called once.
func (a *Agent) Run(ctx context.Context) error {
	a.log.Info("starting", "version", a.options.Version, "node", a.nodeName, "standalone", a.client == nil,
		"stateDir", a.config.StateDir, "manifests", a.config.Manifests, "endpoints", a.Address())
	return a.life.Run(ctx, a.parts())
}

// eventStarting is the reason of the Node's event that this program has started, as with the kubelet.
const eventStarting = "Starting"

// parts returns the parts in the order of their start: dependencies come first.
func (a *Agent) parts() []process.Part {
	joined := a.client != nil
	manager := process.Part{Name: "status manager", Run: a.manager.Run}
	if joined {
		manager.BeforeStop = a.manager.Flush
	}
	var parts []process.Part
	add := func(wanted bool, name string, run func(context.Context) error) {
		if wanted {
			parts = append(parts, process.Part{Name: name, Run: run})
		}
	}
	add(true, "reloads", a.awaitReload)
	add(a.front != nil, "endpoints", func(ctx context.Context) error { return a.front.Serve(ctx, a.endpoints()) })
	add(joined, "objects of pods", a.objects.Run)
	runner, runs := a.runtime.(runtime.Runner)
	add(runs, "runtime", func(ctx context.Context) error { return runner.Run(ctx) })
	parts = append(parts, manager)
	add(true, "events", func(ctx context.Context) error {
		a.events.NodeEvent(v1.EventTypeNormal, eventStarting, "Starting statusd.")
		return a.events.Run(ctx)
	})
	add(joined, "node", a.keepNode)
	add(true, "machine", a.machine.run)
	add(true, "prober", a.prober.Run)
	add(true, "workers", a.workers.Run)
	add(true, "evictions", a.evictions.Run)
	add(joined, "overdue statuses", a.followOverdue)
	add(joined, "mirror pods", a.mirrors.Run)
	add(joined, "pods of the api", a.followPods)
	byFile := a.isByFile()
	add(byFile, "identity", a.checkIdentity)
	add(byFile, "credentials", a.followCredentials)
	add(byFile && a.config.BootstrapKubeconfig != "", "certificate", func(ctx context.Context) error {
		return certs.Renew(ctx, a.config.bootstrapOptions(a.nodeName, a.options))
	})
	add(true, "static pods", a.followManifests)
	add(true, "shutdown", a.shutdown.Run)
	if a.kubelet.server != nil {
		parts = append(parts, a.kubelet.server.Parts()...)
	}
	add(true, "control socket", a.control)
	return parts
}

// isByFile reports whether the credentials are those of the kubeconfig: otherwise the program has chosen whom it acts as.
func (a *Agent) isByFile() bool { return a.config.Kubeconfig != "" && a.options.RESTConfig == nil }

// Inside returns the parts of this node to the commands of this module. Inside is not part of the public API: the type of its
// result is internal and changes without notice. A program that embeds a node calls [Agent.Run].
func (a *Agent) Inside() *inside.Node {
	return &inside.Node{
		Name: a.nodeName, Table: a.table, Manager: a.manager, Workers: a.workers, Events: a.events, Runtime: a.runtime, Journal: a.journal,
		Client: a.client, Object: a.node, Certificate: a.shownCertificate, Lease: a.options.lease, Manifests: a.manifests,
		Listed: a.dispatcher.allListed, Pods: reportedPods{a.table, a.manager}, Active: a.activePods,
		Facts: a.facts, NodeFacts: a.nodeFacts, Log: a.lastLines, Here: a.here, Alive: a.alive, NotReady: a.notReady, WatchErr: a.apiProblem,
		ShuttingDown: func() bool { return a.shutdown.Err() != nil },
		Endpoints:    a.endpoints(), Parts: a.parts(),
	}
}

// followPods runs the source of pods of the API once they are the pods of this machine.
func (a *Agent) followPods(ctx context.Context) error {
	select {
	case <-a.node.Claimed():
		return a.api.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// apiPatience is how long static pods wait for the API at the start. It is short, because
// the API may be one of them.
const apiPatience = 2 * time.Second

// followManifests runs the source of static pods. Without a manifest directory it reports an empty
// list, because the workers wait for every source. The API goes first if it answers, because the
// mirrors hold the statuses of static pods from before a restart.
func (a *Agent) followManifests(ctx context.Context) error {
	if a.client != nil {
		select {
		case <-a.dispatcher.apiListed:
		case <-time.After(a.options.apiPatience):
			a.log.Info("api does not answer, static pods start without it", "waited", a.options.apiPatience)
		case <-ctx.Done():
			return nil
		}
	}
	if a.manifests != nil {
		return a.manifests.Run(ctx)
	}
	a.handle(source.Change{Origin: source.FromFile, Op: source.Set})
	<-ctx.Done()
	return nil
}

// alive returns, unless a lock that all parts need is stuck.
func (a *Agent) alive() {
	none := &v1.Pod{}
	a.table.ByUID(none.UID)
	a.manager.GetPodStatus(none.UID)
	a.workers.CouldHaveRunningContainers(none)
}

// Close closes everything that New has opened. Run calls Close itself.
func (a *Agent) Close() error { return a.life.Close() }
