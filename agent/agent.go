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
	"k8s.io/client-go/rest"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/bootstrap"
	"github.com/statusd/statusd/eviction"
	"github.com/statusd/statusd/guard/host"
	"github.com/statusd/statusd/history"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/mirror"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podsapi"
	"github.com/statusd/statusd/probe"
	"github.com/statusd/statusd/rules/alerting"
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
	certificate rest.TLSClientConfig // what the client shows to the API server
	objects     *apiobjects.Objects  // nil: standalone

	apiServer string // its host and port, for containers

	table      *pods.Table
	dispatcher *dispatcher
	handle     func(source.Change) // the dispatcher's, one change at a time
	manager    *status.Manager
	events     *daemon.Events
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
	alerts     *alerting.Alerting // nil: there are no rules
	known      chan struct{}      // closed once rules can be evaluated
	watched    *host.Host
	guard      *selfGuard // nil: it is switched off

	born time.Time // when it was made

	apiPatience         time.Duration // the constant, but in tests
	credentialsInterval time.Duration // 0: as usual
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
	a := &Agent{config: config, options: options, nodeName: name, log: options.Logger, metrics: prometheus.NewRegistry(), born: time.Now(), apiPatience: apiPatience}
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
var ErrReload = daemon.ErrReload

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
	a.events.NodeEvent(v1.EventTypeNormal, eventStarting, "Starting statusd.")
	err := daemon.RunParts(ctx, a.log, a.config.ShutdownTimeout, a.parts(ctx))
	if err != nil {
		err = fmt.Errorf("agent: %w", err)
	}
	return errors.Join(err, a.Close())
}

// eventStarting is the reason of the Node's event that this program has started, as with the kubelet.
const eventStarting = "Starting"

// parts in the order in which they start: what others need comes first.
func (a *Agent) parts(whole context.Context) []daemon.Part {
	joined := a.client != nil
	manager := daemon.Part{Name: "status manager", Run: a.manager.Run}
	if joined {
		manager.BeforeStop = a.manager.Flush
	}
	var parts []daemon.Part
	add := func(wanted bool, p daemon.Part) {
		if wanted {
			parts = append(parts, p)
		}
	}
	add(true, daemon.Part{Name: "history", Run: a.history.Run}) // ends last, to have everything
	add(a.listener != nil, daemon.Part{Name: "endpoints", Run: func(ctx context.Context) error { return a.endpoints().Serve(ctx, a.listener) }})
	add(a.sockets.query != nil, daemon.Part{Name: "query socket", Run: func(ctx context.Context) error { return a.endpoints().Serve(ctx, a.sockets.query) }})
	add(true, daemon.Part{Name: "query", Run: a.query.Run})
	add(a.sockets.pods != nil, daemon.Part{Name: "pods socket", Run: func(ctx context.Context) error {
		return a.podsAPI.Run(ctx, netutil.LimitListener(a.sockets.pods, daemon.MaxConnections))
	}})
	add(joined, daemon.Part{Name: "objects of pods", Run: a.objects.Run})
	runner, runs := a.runtime.(runtime.Runner)
	add(runs, daemon.Part{Name: "runtime", Run: func(ctx context.Context) error { return runner.Run(ctx) }})
	add(true, manager)
	add(true, daemon.Part{Name: "history of the node", Run: a.followNode})
	add(true, daemon.Part{Name: "events", Run: a.events.Run})
	add(joined, daemon.Part{Name: "node", Run: a.node.Run})
	add(true, daemon.Part{Name: "machine", Run: a.machine.run})
	add(true, daemon.Part{Name: "prober", Run: a.prober.Run})
	add(true, daemon.Part{Name: "workers", Run: a.workers.Run})
	add(true, daemon.Part{Name: "evictions", Run: a.evictions.Run})
	add(true, daemon.Part{Name: "logs and load", Run: a.watched.Run})
	add(a.guard != nil, daemon.Part{Name: "guard", Run: func(ctx context.Context) error { return a.guard.Run(ctx) }})
	add(a.alerts != nil, daemon.Part{Name: "alerts", Run: a.runAlerts})
	add(joined, daemon.Part{Name: "overdue statuses", Run: a.followOverdue})
	add(joined, daemon.Part{Name: "mirror pods", Run: a.mirrors.Run})
	add(joined, daemon.Part{Name: "pods of the api", Run: a.api.Run})
	byFile := joined && a.options.RESTConfig == nil // else the program has chosen whom it acts as
	add(byFile, daemon.Part{Name: "identity", Run: a.checkIdentity})
	add(byFile, daemon.Part{Name: "credentials", Run: a.followCredentials})
	add(byFile && a.config.BootstrapKubeconfig != "", daemon.Part{Name: "certificate", Run: func(ctx context.Context) error {
		return bootstrap.Renew(ctx, a.config.bootstrapOptions(a.nodeName, a.options))
	}})
	add(true, daemon.Part{Name: "static pods", Run: a.followManifests})
	add(true, daemon.Part{Name: "shutdown", Run: a.shutdown.Run})
	parts = append(parts, a.kubelet.parts()...)
	add(true, daemon.Part{Name: "control socket", Run: a.control})
	add(true, daemon.Part{Name: "supervisor", Run: func(ctx context.Context) error {
		return a.options.Supervisor.Supervise(ctx, a.log, a.alive, func() bool { return errors.Is(context.Cause(whole), ErrReload) })
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
