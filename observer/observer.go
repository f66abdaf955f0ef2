package observer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/guard/host"
	"github.com/statusd/statusd/guard/standard"
	"github.com/statusd/statusd/history"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/observe"
	"github.com/statusd/statusd/rules/alerting"
	"github.com/statusd/statusd/web"
)

// Observer is a whole statusd observe. See the package comment.
type Observer struct {
	config     Config
	options    Options
	node       string
	log        *slog.Logger
	registry   *prometheus.Registry
	registerer prometheus.Registerer // registry, but in a test that looks at what is registered
	metrics    *metrics

	// What is open. Nil: not (yet).
	lock     *os.File
	listener net.Listener
	scraped  net.Listener
	socket   net.Listener
	closing  sync.Once
	ran      atomic.Bool

	rest        *rest.Config
	client      kubernetes.Interface
	credentials [sha256.Size]byte // the digest of those that the client has

	sides     Sides
	news      chan struct{} // capacity 1: one is enough
	beat      chan struct{} // without capacity: the goroutine that audits sends while it is not stuck
	ended     chan struct{} // closed when that goroutine has ended
	auditor   auditor       // of the goroutine that audits, as is recorder
	recorder  *recorder
	view      atomic.Pointer[view]
	listeners daemon.Listeners
	history   *history.Store
	events    *announcements
	condition *nodecondition.Keeper // nil: not kept
	repairs   *repairs              // nil: nothing is repaired
	guard     *standard.Guard       // nil: there is none
	machine   *host.Host
	query     *api.Server
	alerts    *alerting.Alerting // nil: there are no rules
	known     chan struct{}      // closed once the API has answered
}

// What lies in the state directory.
const (
	historyFile = "history"
	auditFile   = "audit"
	lockFile    = "lock"
)

// New makes an observer and opens what it needs: the state directory, the ports, the kubeconfig. Whatever can
// be found wrong before anything runs is an error here. It starts nothing: call [Observer.Run], or
// [Observer.Close] if it is not to be run.
func New(config Config, options Options) (*Observer, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	name, err := config.nodeName()
	if err != nil {
		return nil, fmt.Errorf("observer: %w", err)
	}
	options.setDefaults(config)
	o := &Observer{
		config: config, options: options, node: name, log: options.Logger, registry: prometheus.NewRegistry(),
		metrics: newMetrics(), news: make(chan struct{}, 1), beat: make(chan struct{}), ended: make(chan struct{}),
		known: make(chan struct{}),
	}
	if o.registerer = options.registerer; o.registerer == nil {
		o.registerer = o.registry
	}
	err = o.open()
	if err == nil {
		err = o.wire()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("observer: %w", err), o.Close())
	}
	o.register()
	return o, nil
}

// wire makes the parts and connects them.
func (o *Observer) wire() error {
	newSides := o.options.NewSides
	if newSides == nil {
		newSides = o.realSides
	}
	sides, err := newSides(o.rest, o.changed)
	if err != nil {
		return err
	}
	o.sides = sides
	o.history = history.New(history.Options{File: filepath.Join(o.config.StateDir, historyFile), Logger: o.log})
	o.recorder = newRecorder(o.history)
	before := o.restore()
	o.auditor = observe.NewAuditor(observe.AuditorOptions{State: before.Auditor})
	o.view.Store(newView(observe.Facts{Node: o.node}, observe.Report{Node: o.node, Differences: before.Differences}))
	o.events = newAnnouncements(o.config.Events, daemon.NewEvents(o.node, o.client, o.log))
	if o.config.NodeCondition {
		o.condition = newCondition(o.client, o.node, o.log)
	}
	if len(o.config.Repair.Kinds) > 0 {
		if o.repairs, err = o.newRepairs(); err != nil {
			return err
		}
	}
	if o.config.Guard.Enabled {
		if o.guard, err = o.newGuard(); err != nil {
			return err
		}
	}
	if o.machine, err = o.newMachine(); err != nil {
		return err
	}
	if err := o.wireAlerts(); err != nil {
		return err
	}
	o.query, err = api.New(api.Options{Source: answers{o}, Audit: answers{o}, Guard: o.guardSource(), Load: o.loadSource(), Alerts: o.alertSource(), Page: web.Handler(), MaxWatchers: maxWatchers})
	return err
}

// maxWatchers is how many watches the query API serves at a time. It is below daemon.MaxConnections, so
// that watches do not keep probes and scrapes out.
const maxWatchers = 64

// Address is where the endpoints are served, empty if they are not.
func (o *Observer) Address() string {
	if o.listener == nil {
		return ""
	}
	return o.listener.Addr().String()
}

var errRunTwice = errors.New("observer: Run may be called only once")

// Run observes until ctx ends, then stops in order and within ShutdownTimeout, closes what is open, and
// returns. It may be called once.
func (o *Observer) Run(ctx context.Context) error {
	if o.ran.Swap(true) {
		return errRunTwice
	}
	o.log.Info("starting", "version", o.options.Version, "node", o.node, "stateDir", o.config.StateDir, "endpoints", o.Address(),
		"events", o.config.Events, "nodeCondition", o.config.NodeCondition, "repair", o.config.Repair.Kinds, "dryRun", o.config.Repair.DryRun)
	err := daemon.RunParts(ctx, o.log, o.config.ShutdownTimeout, o.parts(ctx))
	if err != nil {
		err = fmt.Errorf("observer: %w", err)
	}
	return errors.Join(err, o.Close())
}

// parts in the order in which they start: what others need comes first.
func (o *Observer) parts(whole context.Context) []daemon.Part {
	var parts []daemon.Part
	add := func(wanted bool, p daemon.Part) {
		if wanted {
			parts = append(parts, p)
		}
	}
	add(true, daemon.Part{Name: "history", Run: o.history.Run}) // ends last, to have everything
	add(o.listener != nil, daemon.Part{Name: "endpoints", Run: func(ctx context.Context) error { return o.endpoints().Serve(ctx, o.listener) }})
	add(o.scraped != nil, daemon.Part{Name: "metrics", Run: func(ctx context.Context) error {
		public := o.endpoints()
		public.Query = nil // of the pods it says nothing
		return public.Serve(ctx, o.scraped)
	}})
	add(o.socket != nil, daemon.Part{Name: "query socket", Run: func(ctx context.Context) error { return o.endpoints().Serve(ctx, o.socket) }})
	add(true, daemon.Part{Name: "query", Run: o.query.Run})
	add(o.config.Events || o.config.Machine.Events || o.sendsAlerts(), daemon.Part{Name: "events", Run: o.events.sender.Run})
	if o.condition != nil {
		add(true, daemon.Part{Name: "node condition", Run: o.condition.Run})
	}
	if o.repairs != nil {
		add(true, daemon.Part{Name: "repairs", Run: o.repairs.run})
	}
	if o.alerts != nil {
		add(true, daemon.Part{Name: "alerts", Run: o.alerts.Run})
	}
	add(true, daemon.Part{Name: "audits", Run: o.follow})
	add(true, daemon.Part{Name: "history of the node", Run: o.followNode})
	add(true, daemon.Part{Name: "machine side", Run: o.sides.Machine.Run})
	add(true, daemon.Part{Name: "runtime side", Run: o.sides.Runtime.Run})
	add(true, daemon.Part{Name: "kubelet side", Run: o.sides.Kubelet.Run})
	add(true, daemon.Part{Name: "api side", Run: o.sides.API.Run})
	if o.guard != nil {
		add(true, daemon.Part{Name: "guard", Run: o.guard.Run})
	}
	add(true, daemon.Part{Name: "logs and load", Run: o.machine.Run})
	add(o.config.Kubeconfig != "", daemon.Part{Name: "credentials", Run: o.followCredentials})
	add(true, daemon.Part{Name: "supervisor", Run: func(ctx context.Context) error {
		return o.options.Supervisor.Supervise(ctx, o.log, o.alive, func() bool { return errors.Is(context.Cause(whole), ErrReload) })
	}})
	return parts
}

// endpoints are what the observer serves. A side that does not answer is no reason to restart it.
func (o *Observer) endpoints() *daemon.Endpoints {
	e := &daemon.Endpoints{Alive: o.alive, Metrics: o.registry, Query: o.query.Handler()}
	for _, side := range sideOrder {
		e.Ready = append(e.Ready, daemon.Check{Name: string(side), Err: func() error {
			switch answer := o.view.Load().report.Sides[side]; {
			case answer.Err != "":
				return errors.New(answer.Err)
			case !answer.Known():
				return errors.New("it has not answered yet")
			}
			return nil
		}})
	}
	return e
}

// Close closes what New has opened. Run does so by itself.
func (o *Observer) Close() error {
	var problems []error
	o.closing.Do(func() {
		for _, listener := range []net.Listener{o.listener, o.scraped, o.socket} {
			if listener == nil {
				continue
			}
			if err := listener.Close(); !errors.Is(err, net.ErrClosed) { // the server may have closed it
				problems = append(problems, err)
			}
		}
		if o.guard != nil && !o.ran.Load() {
			o.guard.Close()
		}
		if o.lock != nil {
			problems = append(problems, o.lock.Close())
		}
	})
	return errors.Join(problems...)
}
