package observer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard/guardsetup"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/process/console"
)

// Observer is a whole statusd observe. See the package comment.
type Observer struct {
	config     Config
	options    Options
	node       string
	log        *slog.Logger
	registry   *prometheus.Registry
	registerer prometheus.Registerer // registry, except in tests that read the registered metrics
	metrics    *metrics

	life    process.Life
	console *console.Console

	connection  *process.Connection // of the clients, with its credentials
	rest        *rest.Config        // for clients of the connection
	client      kubernetes.Interface
	credentials [sha256.Size]byte // the digest of the client's credentials

	sides      Sides
	news       chan struct{} // capacity 1: one is enough
	beat       chan struct{} // without capacity: the goroutine that audits sends while it is not stuck
	ended      chan struct{} // closed when that goroutine has ended
	auditor    auditor       // of the goroutine that audits, as is recorder
	recorder   *recorder
	view       atomic.Pointer[view]
	events     *announcements
	conditions *nodecondition.Keeper
	condition  *nodecondition.Owner // nil: not kept
	repairs    *repairs             // nil: nothing is repaired
	guard      *guardsetup.Guard    // nil: disabled
	known      chan struct{}        // closed once the API has answered
}

// File names in the state directory.
const (
	auditFile = "audit"
	lockFile  = "lock"
)

// New makes an observer and opens its resources: the state directory, the ports, the kubeconfig. New reports
// all errors that can be found before anything runs. New starts nothing: call [Observer.Run], or
// [Observer.Close] if Run will not be called.
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
	o.life = process.Life{Name: "observer", Timeout: shutdownTimeout, Supervisor: options.Supervisor, Alive: o.alive, Logger: o.log}
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
	o.recorder = newRecorder(o.console.History)
	before := o.restore()
	o.auditor = audit.NewAuditor(audit.AuditorOptions{State: before.Auditor})
	o.view.Store(newView(audit.Facts{Node: o.node}, audit.Report{Node: o.node, Differences: before.Differences}))
	o.events = newAnnouncements(o.config.Outputs.Events, process.NewEvents(o.node, o.client, o.log))
	o.conditions = nodecondition.New(nodecondition.Options{Client: o.client, Node: o.node, Logger: o.log})
	if o.config.Outputs.Conditions {
		o.condition = o.conditions.Owner(conditionTerms)
	}
	if len(o.config.Repair.Kinds) > 0 {
		if o.repairs, err = o.newRepairs(); err != nil {
			return err
		}
	}
	return o.console.Connect(o.shown())
}

// shown is what the console gets of the observer.
func (o *Observer) shown() console.Process {
	shown := console.Process{
		Facts: answers{o}, Audit: answers{o}, Find: o.find, Endpoints: o.endpoints(), Subject: "observer", Records: o.sideRecords(),
		HostRoot: o.config.HostRoot, Client: o.client, Conditions: o.conditions, Events: o.events.sender, Machine: o.config.machine(), Rules: o.config.Rules, Outputs: o.config.Outputs, Known: o.known,
		Why: map[ruleset.ActionKind]string{
			ruleset.ActionRestartContainer: "beside a kubelet no container is restarted: the kubelet would report the restart as a crash",
			ruleset.ActionRestartKubelet:   "the guard is off: set guard.enabled",
		},
	}
	if o.config.Guard.Enabled {
		shown.NewGuard = o.newGuard
		shown.RestartKubelet = func(ctx context.Context, reason string) error { return o.guard.Restart(ctx, reason) }
	}
	return shown
}

// Address is where the endpoints are served, empty if they are not.
func (o *Observer) Address() string { return o.console.Address() }

// Run observes until ctx ends, then stops in order, closes all resources, and returns. It may be
// called once.
func (o *Observer) Run(ctx context.Context) error {
	o.log.Info("starting", "version", o.options.Version, "node", o.node, "stateDir", o.config.StateDir, "endpoints", o.Address(),
		"events", o.config.Outputs.Events, "conditions", o.config.Outputs.Conditions, "repair", o.config.Repair.Kinds, "dryRun", o.config.Repair.DryRun)
	return o.life.Run(ctx, slices.Concat(o.console.First(), o.parts(), o.console.Last()))
}

// parts returns the parts in the order in which they start: dependencies come first.
func (o *Observer) parts() []process.Part {
	parts := []process.Part{{Name: "events", Run: o.events.sender.Run}}
	if o.repairs != nil {
		parts = append(parts, process.Part{Name: "repairs", Run: o.repairs.run})
	}
	parts = append(parts, process.Part{Name: "audits", Run: o.follow},
		process.Part{Name: "machine side", Run: o.sides.Machine.Run}, process.Part{Name: "runtime side", Run: o.sides.Runtime.Run},
		process.Part{Name: "kubelet side", Run: o.sides.Kubelet.Run}, process.Part{Name: "api side", Run: o.sides.API.Run})
	if o.config.Kubeconfig != "" {
		parts = append(parts, process.Part{Name: "credentials", Run: o.followCredentials})
	}
	return parts
}

// endpoints are what the observer serves. A side that does not answer is no reason to restart it.
func (o *Observer) endpoints() *process.Endpoints {
	e := &process.Endpoints{Alive: o.alive, Metrics: o.registry}
	for _, side := range sideOrder {
		e.Ready = append(e.Ready, process.Check{Name: string(side), Err: func() error {
			switch answer := o.view.Load().report.Sides[side]; {
			case answer.Err != "":
				return errors.New(answer.Err)
			case !answer.Known():
				return errors.New("no answer yet")
			}
			return nil
		}})
	}
	return e
}

// Close closes the resources of New. Run does so by itself.
func (o *Observer) Close() error { return o.life.Close() }
