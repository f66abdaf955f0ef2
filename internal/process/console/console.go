package console

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/alert/alertsetup"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/machine"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/internal/web"
)

// maxWatchers is how many watches the query API serves at a time. It is below process.MaxConnections, so that
// watches do not keep probes and scrapes out.
const maxWatchers = 64

// historyFile is the history in the state directory.
const historyFile = "history"

// StateFiles are patterns of the files in the state directory.
var StateFiles = append([]string{historyFile + "*", machine.PositionsFile + "*"}, alertsetup.StateFiles...)

// Options configure a console before its process has any facts.
type Options struct {
	// Node is the name of the node, StateDir the directory of the process's state, Version the program's version.
	Node, StateDir, Version string
	// Healthz is where everything is served, Metrics where health and metrics are; empty: not there.
	Healthz, Metrics string
	// Fronts have the addresses of the previous process in this program; nil: none.
	Fronts     *process.Fronts
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Console shows the node of a process and reports about it. Make it with [New].
type Console struct {
	// Listeners are called when something about a pod, or the node, has changed.
	process.Listeners
	History *history.Store

	o                         Options
	p                         Process
	healthz, metrics, sockets *process.Front // nil: not served
	machine                   *machine.Host
	guard                     Guard                // nil: it is off
	alerts                    *alertsetup.Alerting // nil: there are no rules
	query                     *queryapi.Server
}

// New binds the addresses and makes the history. New starts nothing; life closes them.
func New(o Options, life *process.Life) (_ *Console, err error) {
	c := &Console{o: o, History: history.New(history.Options{File: filepath.Join(o.StateDir, historyFile), Logger: o.Logger})}
	if err := o.Fronts.Keep(o.Healthz, o.Metrics); err != nil {
		o.Logger.Warn("addresses of the former config did not close in order", "err", err)
	}
	if c.healthz, err = o.Fronts.Listen(o.Healthz, "healthz-bind-address"); err != nil {
		return nil, err
	}
	closeWith(life, c.healthz)
	if c.metrics, err = o.Fronts.Listen(o.Metrics, "metrics-bind-address"); err != nil {
		return nil, err
	}
	closeWith(life, c.metrics)
	return c, nil
}

func closeWith(life *process.Life, front *process.Front) {
	if front != nil {
		life.OnClose(front)
	}
}

// OpenSocket binds the socket of the query API, if there is a path. Call it once the state directory is locked.
func (c *Console) OpenSocket(path string, life *process.Life) {
	c.sockets = c.o.Fronts.OpenSocket(c.o.Logger, "query", path)
	closeWith(life, c.sockets)
}

// Address is where the endpoints are served, empty if they are not.
func (c *Console) Address() string { return c.healthz.Address() }

// Guard judges the node's kubelet.
type Guard interface {
	view.GuardSource
	Run(context.Context) error
}

// Facts are a process's facts of its node. Its methods follow the rules of a [view.Source].
type Facts interface {
	UIDs() []types.UID
	Pod(uid types.UID) (view.Pod, bool)
	Node() view.NodeDetail
}

// Outputs are the destinations of a process's findings: the section outputs of its config.
type Outputs = alertsetup.Outputs

// Process has the sources and abilities of a process. Facts, Events, Endpoints, Subject and Records are required.
type Process struct {
	Facts Facts
	Audit view.AuditSource // nil: no audit
	Logs  view.LogSource   // nil: logs are not served
	// Find returns the pod of a process that a log names, nil if it is not one of this node, and its container.
	Find func(victim *logs.Victim) (pod *v1.Pod, container string)
	// Endpoints are served in addition to the query API.
	Endpoints *process.Endpoints
	// Subject names the process in the history of the node, and Records returns the process's new records since the last
	// call.
	Subject string
	Records func() []history.Record

	// HostRoot is where the root of the machine is.
	HostRoot string
	// Client and Conditions are nil without an API server.
	Client     kubernetes.Interface
	Conditions *nodecondition.Keeper
	Events     *process.Events
	// OwnsNode: conditions of alerts are removed from the Node also if they are off.
	OwnsNode bool

	Machine machine.Config
	Rules   alertsetup.Config
	Outputs Outputs
	// NewGuard makes the guard, nil if it is off. The guard records and announces by the console.
	NewGuard func(*Console) (Guard, error)
	// Known is closed once rules can be evaluated.
	Known <-chan struct{}
	// RestartContainer and RestartKubelet do these actions of rules; nil: not possible, and Why gives the
	// reason.
	RestartContainer func(r *engine.ActionRequest, reason string) error
	RestartKubelet   func(ctx context.Context, reason string) error
	Why              map[ruleset.ActionKind]string
}

// Connect creates the parts of the console that depend on a process.
func (c *Console) Connect(p Process) (err error) {
	c.p = p
	var conditions *nodecondition.Owner
	if p.Outputs.Conditions && p.Conditions != nil {
		conditions = p.Conditions.Owner(nodecondition.Terms{})
	}
	c.machine, err = machine.New(p.Machine, machine.Options{
		Node: c.o.Node, Conditions: conditions, HostRoot: p.HostRoot, StateDir: c.o.StateDir, Found: c.foundInLogs, Changed: c.NodeChanged,
		Registerer: c.o.Registerer, Logger: c.o.Logger,
	})
	if err != nil {
		return err
	}
	if p.NewGuard != nil {
		if c.guard, err = p.NewGuard(c); err != nil {
			return err
		}
	}
	if err := c.connectAlerts(); err != nil {
		return err
	}
	sources := view.Sources{Source: source{c}, Audit: p.Audit, Logs: p.Logs}
	if c.guard != nil {
		sources.Guard = c.guard
	}
	if c.machine.HasLoad() {
		sources.Load = c.machine
	}
	if c.alerts != nil {
		sources.Alerts = c.alerts
	}
	p.Endpoints.Overview = func() any { return view.NewOverview(sources, c.o.Node, c.o.Version, time.Now()) }
	c.query, err = queryapi.New(queryapi.Options{Sources: sources, Page: web.Handler(), MaxWatchers: maxWatchers})
	return err
}

// connectAlerts makes what evaluates rules, if there are any.
func (c *Console) connectAlerts() (err error) {
	if !c.p.Rules.Enabled() {
		return nil
	}
	with := alertsetup.Process{
		Source: source{c}, Audit: c.p.Audit, Ready: c.p.Known, Node: c.o.Node, StateDir: c.o.StateDir,
		Client: c.p.Client, Conditions: c.p.Conditions, OwnsNode: c.p.OwnsNode, Outputs: c.p.Outputs, Event: c.p.Events.Take, Record: c.recordAction, Changed: c.Announce,
		RestartContainer: c.p.RestartContainer, RestartKubelet: c.p.RestartKubelet, Why: c.p.Why,
		Registerer: c.o.Registerer, Logger: c.o.Logger,
	}
	if c.guard != nil {
		with.Guard = c.guard
	}
	if path := c.p.Rules.ActionsKubeconfig; path != "" {
		config, err := process.LoadKubeconfig(path)
		if err == nil {
			with.ActionsClient, err = kubernetes.NewForConfig(config)
		}
		if err != nil {
			return fmt.Errorf("rules.actionsKubeconfig: %w", err)
		}
	}
	c.alerts, err = alertsetup.New(c.p.Rules, with)
	return err
}

// Alerts returns the source of alerts, nil without rules.
func (c *Console) Alerts() view.AlertSource {
	if c.alerts == nil {
		return nil
	}
	return c.alerts
}

// Source returns the source of the query API.
func (c *Console) Source() view.Source { return source{c} }

// Guard is the guard of the process, nil if it is off.
func (c *Console) Guard() Guard { return c.guard }

// First are the parts that start before the parts of the process, and end after them.
func (c *Console) First() []process.Part {
	parts := []process.Part{{Name: "history", Run: c.History.Run}} // ends last, to have everything
	whole := *c.p.Endpoints
	whole.Query = c.query.Handler()
	serve := func(name string, e *process.Endpoints, front *process.Front) {
		if front != nil {
			parts = append(parts, process.Part{Name: name, Run: func(ctx context.Context) error { return front.Serve(ctx, e) }})
		}
	}
	serve("endpoints", &whole, c.healthz)
	serve("metrics", c.p.Endpoints, c.metrics) // names no pod
	serve("query socket", &whole, c.sockets)
	if c.p.Conditions != nil && c.p.Conditions.Owned() {
		parts = append(parts, process.Part{Name: "node conditions", Run: c.p.Conditions.Run})
	}
	return append(parts, process.Part{Name: "query", Run: c.query.Run})
}

// Last are the parts that start after the parts of the process, and end before them.
func (c *Console) Last() []process.Part {
	parts := []process.Part{{Name: "history of the node", Run: c.followNode}, {Name: "logs and load", Run: c.machine.Run}}
	if c.guard != nil {
		parts = append(parts, process.Part{Name: "guard", Run: c.guard.Run})
	}
	if c.alerts != nil {
		parts = append(parts, process.Part{Name: "alerts", Run: c.alerts.Run})
	}
	return parts
}
