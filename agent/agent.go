package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/bootstrap"
	"github.com/statusd/statusd/eviction"
	"github.com/statusd/statusd/history"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/mirror"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podsapi"
	"github.com/statusd/statusd/probe"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/shutdown"
	"github.com/statusd/statusd/source"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/volume/apiobjects"
	"github.com/statusd/statusd/worker"
)

// Agent is a whole statusd. See the package comment.
type Agent struct {
	config   Config
	options  Options
	nodeName string
	log      *slog.Logger
	metrics  *prometheus.Registry
	// registerer is metrics, but in a test that looks at what is registered.
	registerer prometheus.Registerer

	// What is open, in this order. Nil: not (yet).
	listener net.Listener
	sockets  sockets
	journal  *journal.Durable
	runtime  runtime.Runtime
	kubelet  kubeletAPI
	closing  sync.Once
	ran      atomic.Bool

	machine     *machine
	client      kubernetes.Interface // nil: standalone
	credentials [sha256.Size]byte    // the digest of those that the client has
	objects     *apiobjects.Objects  // nil: standalone

	apiServer string // its host and port, for containers

	table      *pods.Table
	dispatcher *dispatcher
	handle     func(source.Change) // the dispatcher's, one change at a time
	manager    *status.Manager
	events     *events
	prober     *probe.Prober
	workers    *worker.Workers
	evictions  *eviction.Manager
	node       *node.Node        // nil: standalone
	api        *source.API       // nil: standalone
	mirrors    *mirror.Mirrors   // nil: standalone
	manifests  *source.Manifests // nil: none configured
	shutdown   *shutdown.Manager
	changes    changes
	history    *history.Store
	warnings   warnings
	query      *api.Server
	podsAPI    *podsapi.Server

	born time.Time // when it was made

	apiPatience         time.Duration // the constants, but in tests
	credentialsInterval time.Duration
}

// New makes an agent and opens what it needs: the port, the journal, the state of the
// runtime, the kubeconfig. Whatever can be found wrong before anything runs is an error
// here. It starts nothing: call [Agent.Run], or [Agent.Close] if it is not to be run.
func New(config Config, options Options) (*Agent, error) {
	if err := errors.Join(config.validate(options.RESTConfig != nil), options.Validate()); err != nil {
		return nil, err
	}
	name, err := config.nodeName()
	if err != nil {
		return nil, err
	}
	options.setDefaults(config)
	a := &Agent{config: config, options: options, nodeName: name, log: options.Logger, metrics: prometheus.NewRegistry(), born: time.Now(), apiPatience: apiPatience, credentialsInterval: credentialsInterval}
	if a.registerer = options.registerer; a.registerer == nil {
		a.registerer = a.metrics
	}
	a.machine = &machine{read: options.Machine, interval: options.machineInterval, log: a.log, changed: a.addressesChanged}
	a.kubelet.probes = prometheus.NewRegistry()
	if err := a.open(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := a.wire(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.registerMetrics()
	return a, nil
}

// Address is where the endpoints are served, empty if they are not.
func (a *Agent) Address() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// ErrReload as the cause of the end of Run's context means that another agent takes over in this
// process: systemd gets RELOADING=1, not STOPPING=1.
var ErrReload = errors.New("reload")

var errRunTwice = errors.New("agent: Run may be called only once")

// Run does the work of the agent until ctx ends, then stops in order and within
// ShutdownTimeout, closes what is open, and returns. Containers run on. It returns an error
// if something did not go as it should. It may be called once.
func (a *Agent) Run(ctx context.Context) error {
	if a.ran.Swap(true) {
		return errRunTwice
	}
	a.log.Info("starting", "version", a.options.Version, "node", a.nodeName, "standalone", a.client == nil,
		"stateDir", a.config.StateDir, "manifests", a.config.Manifests, "endpoints", a.Address())
	a.events.nodeEvent(v1.EventTypeNormal, eventStarting, "Starting statusd.")
	err := runParts(ctx, a.log, a.config.ShutdownTimeout, a.parts(ctx))
	return errors.Join(err, a.Close())
}

// parts in the order in which they start: what others need comes first.
func (a *Agent) parts(whole context.Context) []part {
	joined := a.client != nil
	manager := part{name: "status manager", run: a.manager.Run}
	if joined {
		manager.beforeStop = a.manager.Flush
	}
	var parts []part
	add := func(wanted bool, p part) {
		if wanted {
			parts = append(parts, p)
		}
	}
	add(true, part{name: "history", run: a.history.Run}) // ends last, to have everything
	add(a.listener != nil, part{name: "endpoints", run: func(ctx context.Context) error { return a.endpoints().serve(ctx, a.listener) }})
	add(a.sockets.query != nil, part{name: "query socket", run: func(ctx context.Context) error { return a.endpoints().serve(ctx, a.sockets.query) }})
	add(true, part{name: "query", run: a.query.Run})
	add(a.sockets.pods != nil, part{name: "pods socket", run: func(ctx context.Context) error {
		return a.podsAPI.Run(ctx, netutil.LimitListener(a.sockets.pods, maxConnections))
	}})
	add(joined, part{name: "objects of pods", run: a.objects.Run})
	runner, runs := a.runtime.(runtime.Runner)
	add(runs, part{name: "runtime", run: func(ctx context.Context) error { return runner.Run(ctx) }})
	add(true, manager)
	add(true, part{name: "history of the node", run: a.followNode})
	add(true, part{name: "events", run: a.events.run})
	add(joined, part{name: "node", run: a.node.Run})
	add(true, part{name: "machine", run: a.machine.run})
	add(true, part{name: "prober", run: a.prober.Run})
	add(true, part{name: "workers", run: a.workers.Run})
	add(true, part{name: "evictions", run: a.evictions.Run})
	add(joined, part{name: "overdue statuses", run: a.followOverdue})
	add(joined, part{name: "mirror pods", run: a.mirrors.Run})
	add(joined, part{name: "pods of the api", run: a.api.Run})
	byFile := joined && a.options.RESTConfig == nil // else the program has chosen whom it acts as
	add(byFile, part{name: "identity", run: a.checkIdentity})
	add(byFile, part{name: "credentials", run: a.followCredentials})
	add(byFile && a.config.BootstrapKubeconfig != "", part{name: "certificate", run: func(ctx context.Context) error {
		return bootstrap.Renew(ctx, a.config.bootstrapOptions(a.nodeName, a.options))
	}})
	add(true, part{name: "static pods", run: a.followManifests})
	add(true, part{name: "shutdown", run: a.shutdown.Run})
	parts = append(parts, a.kubelet.parts()...)
	add(true, part{name: "control socket", run: a.control})
	add(true, part{name: "supervisor", run: func(ctx context.Context) error {
		return a.options.Supervisor.supervise(ctx, a.log, a.alive, func() bool { return errors.Is(context.Cause(whole), ErrReload) })
	}})
	return parts
}

// apiPatience is how long static pods wait for the API at the start. It is short, because
// the API may be one of them.
const apiPatience = 2 * time.Second

// followManifests runs the source of static pods. Without one it reports that there are none,
// because the workers wait for every source. The API goes first if it answers, because the mirrors
// hold the statuses of static pods from before a restart.
func (a *Agent) followManifests(ctx context.Context) error {
	if a.client != nil {
		select {
		case <-a.dispatcher.apiListed:
		case <-time.After(a.apiPatience):
			a.log.Info("api does not answer, static pods start without it", "waited", a.apiPatience)
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

// alive returns unless a lock that everything needs is stuck.
func (a *Agent) alive() {
	none := &v1.Pod{}
	a.table.ByUID(none.UID)
	a.manager.GetPodStatus(none.UID)
	a.workers.CouldHaveRunningContainers(none)
}

// Close closes what New has opened. Run does so by itself.
func (a *Agent) Close() error {
	var problems []error
	a.closing.Do(func() {
		if closer, ok := a.runtime.(io.Closer); ok && a.options.Runtime == nil { // made by NewRuntime
			problems = append(problems, closer.Close())
		}
		if a.journal != nil {
			problems = append(problems, a.journal.Close())
		}
		problems = append(problems, a.kubelet.close())
		for _, listener := range []net.Listener{a.listener, a.sockets.query, a.sockets.pods} {
			if listener == nil {
				continue
			}
			if err := listener.Close(); !errors.Is(err, net.ErrClosed) { // the server may have closed it
				problems = append(problems, err)
			}
		}
	})
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("agent: close: %w", err)
	}
	return nil
}
