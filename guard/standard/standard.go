package standard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/guard/collect"
	"github.com/statusd/statusd/guard/keep"
	"github.com/statusd/statusd/guard/nodedown"
	"github.com/statusd/statusd/guard/notify"
	"github.com/statusd/statusd/guard/service"
	"github.com/statusd/statusd/history"
	"github.com/statusd/statusd/shutdown"
)

// Options are what the program decides, as opposed to the operator. Node and StateDir are required.
type Options struct {
	Node     string
	StateDir string
	// Kubelet and RuntimeService are the services in place of those that the config names, if they are set.
	Kubelet, RuntimeService guard.Service
	// Client reads the lease and writes condition and Events; nil: neither is done.
	Client kubernetes.Interface
	// Server is the kubelet's, as in https://127.0.0.1:10250, and Credentials those for it. Empty: not asked.
	Server      string
	Credentials collect.Credentials
	// Runtime is the CRI socket, KubeletRoot the kubelet's directory, as this process sees them.
	Runtime, KubeletRoot string
	// Process is the name of the kubelet's process, where nothing else says which it is; kubelet if empty.
	Process string
	// DownTimeout is how long children may take to stop when Run ends; 30 s if 0.
	DownTimeout time.Duration
	// Proc is the /proc of the machine; /proc if empty. Bus is the address of D-Bus; the system bus if empty.
	Proc, Bus string
	// API is asked for API server and lease in place of Client, if it is set; Behind for the audit's numbers.
	API    func(now time.Time) (guard.Fact[guard.Answer], guard.Fact[guard.Lease])
	Behind func(now time.Time) guard.Fact[guard.Behind]
	// Audit is kept with the evidence of a restart; nil: it is not.
	Audit func() any
	// Record, Changed, Registerer and Logger are as in [guard.Options].
	Record     func(history.Record)
	Changed    func()
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// The files of the guard in the state directory.
const (
	stateFile    = "guard.json"
	evidenceDir  = "guard"
	childLogFile = "kubelet.log"
	logLines     = 2000
	logBytes     = 1 << 20
)

// Guard is a [guard.Guard] with its parts.
type Guard struct {
	*guard.Guard
	collector *collect.Collector
	server    *http.Client    // of the kubelet; nil: not asked
	down      *nodedown.Watch // nil: shutdowns are not followed
	runs      []func(context.Context) error
	closes    []func()
}

// New makes a guard. It starts nothing.
func New(c Config, o Options) (*Guard, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Guard{}
	kubelet, runtime, err := g.services(&c, &o)
	if err != nil {
		return nil, err
	}
	order := g.order(&c, &o, kubelet, runtime)
	g.shutdowns(&c, &o, order)
	g.server = g.client(&o)
	if err := g.collects(&c, &o, kubelet); err != nil {
		return nil, err
	}
	store, err := keep.New(keep.Options{
		Dir: filepath.Join(o.StateDir, evidenceDir), Parts: parts(&c, &o, g.server), Count: c.EvidenceCount, Bytes: c.EvidenceBytes,
	})
	if err != nil {
		return nil, err
	}
	outputs, err := g.outputs(&c, &o)
	if err != nil {
		return nil, err
	}
	options := guard.Options{
		Kubelet: kubelet, Runtime: runtime, Collect: g.collector.Collect, Policy: c.policy(), Keep: store.Keep, Outputs: outputs,
		StateFile: filepath.Join(o.StateDir, stateFile), Every: c.Interval, DownTimeout: o.DownTimeout,
		Record: o.Record, Changed: o.Changed, Registerer: o.Registerer, Logger: o.Logger,
	}
	if c.kind() == child && o.Kubelet == nil {
		options.Up, options.Down = order.Up, order.Down
	}
	if g.Guard, err = guard.New(options); err != nil {
		return nil, err
	}
	return g, nil
}

// Run runs the guard and its outputs until ctx ends. It returns when nothing of them runs any more.
func (g *Guard) Run(ctx context.Context) error {
	defer g.Close()
	var parts sync.WaitGroup
	defer parts.Wait()
	for _, run := range g.runs {
		parts.Go(func() { _ = run(ctx) })
	}
	return g.Guard.Run(ctx)
}

// Close closes what New has opened. Run does so by itself.
func (g *Guard) Close() {
	for _, end := range g.closes {
		end()
	}
	g.closes = nil
}

// services are those of kubelet and runtime; the runtime's may be nil.
func (g *Guard) services(c *Config, o *Options) (kubelet, runtime guard.Service, err error) {
	if o.Kubelet != nil {
		return o.Kubelet, o.RuntimeService, nil
	}
	unit := func(name string) guard.Service {
		s := service.NewSystemd(name, service.SystemdOptions{Address: o.Bus, Proc: o.Proc})
		g.closes = append(g.closes, s.Close)
		return s
	}
	if c.RuntimeUnit != "" && len(c.RuntimeCommand) == 0 && (c.kind() != child || c.RestartRuntime) { // a child may run where there is no systemd
		runtime = unit(c.RuntimeUnit)
	}
	switch c.kind() {
	case systemd:
		return unit(c.Unit), runtime, nil
	case found:
		return service.Found{PIDFile: c.PIDFile, Comm: cmp.Or(o.Process, "kubelet"), Proc: o.Proc}, runtime, nil
	}
	if len(c.RuntimeCommand) > 0 {
		if runtime, err = g.child(o, "container runtime", "runtime.log", c.RuntimeCommand); err != nil {
			return nil, nil, err
		}
	}
	kubelet, err = g.child(o, "kubelet", childLogFile, c.Command)
	return kubelet, runtime, err
}

// child is a process that logs to a file in the state directory, of which the file before is kept.
func (g *Guard) child(o *Options, name, log string, command []string) (guard.Service, error) {
	file, err := openChildLog(filepath.Join(o.StateDir, log), maxChildLog)
	if err != nil {
		return nil, fmt.Errorf("guard: log of the %s: %w", name, err)
	}
	g.closes = append(g.closes, file.Close)
	return service.NewChild(service.ChildOptions{Name: name, Command: command, Output: file})
}

// client is for the kubelet's server, nil if there is none.
func (g *Guard) client(o *Options) *http.Client {
	if o.Server == "" {
		return nil
	}
	client, err := collect.ServerClient(o.Credentials)
	if err != nil {
		o.Logger.Warn("the kubelet's server is not asked", "err", err)
		return nil
	}
	g.closes = append(g.closes, client.CloseIdleConnections)
	return client
}

func (g *Guard) collects(c *Config, o *Options, kubelet guard.Service) (err error) {
	certificate := c.CertificateFile
	if certificate == "" && o.KubeletRoot != "" {
		certificate = filepath.Join(o.KubeletRoot, "pki", "kubelet-client-current.pem")
	}
	var under func() bool
	if g.down != nil {
		under = g.down.Under
	}
	g.collector, err = collect.New(collect.Options{
		ShuttingDown: under,
		Service:      kubelet, Healthz: c.HealthzURL, Server: o.Server, ServerClient: g.server, Client: o.Client, Node: o.Node,
		API: o.API, Runtime: o.Runtime, Root: o.KubeletRoot, Certificate: certificate, Behind: o.Behind,
	})
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	g.closes = append(g.closes, g.collector.Close)
	return nil
}

// parts are the files of the evidence of a restart.
func parts(c *Config, o *Options, client *http.Client) (all []keep.Part) {
	switch {
	case c.LogFile != "":
		all = append(all, keep.Tail("kubelet.log", c.LogFile, logBytes))
	case c.kind() == child:
		all = append(all, keep.Tail("kubelet.log", filepath.Join(o.StateDir, childLogFile), logBytes))
	case c.kind() == systemd:
		all = append(all, keep.Journal(c.Unit, logLines))
	}
	if client != nil {
		all = append(all, keep.Goroutines(o.Server, client))
	}
	if o.Audit != nil {
		all = append(all, keep.JSON("audit.json", o.Audit))
	}
	return all
}

func (g *Guard) outputs(c *Config, o *Options) (outputs []guard.Output, err error) {
	if o.Client == nil && (c.NodeCondition || c.Events) {
		return nil, errors.New("guard: nodeCondition and events need an API server")
	}
	if c.NodeCondition {
		condition := notify.NewCondition(o.Client, o.Node, o.Logger)
		outputs, g.runs = append(outputs, condition), append(g.runs, condition.Run)
	}
	if c.Events {
		events := notify.NewEvents(o.Client, o.Node, o.Logger)
		outputs, g.runs = append(outputs, events), append(g.runs, events.Run)
	}
	if c.Webhook != "" {
		webhook, err := notify.NewWebhook(notify.WebhookOptions{URL: c.Webhook, Node: o.Node, Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		outputs, g.runs = append(outputs, webhook), append(g.runs, webhook.Run)
	}
	return outputs, nil
}

// shutdowns follows those of the machine.
func (g *Guard) shutdowns(c *Config, o *Options, order service.Order) {
	if !c.Shutdown {
		return
	}
	options := nodedown.Options{
		Host: &shutdown.Logind{Address: o.Bus}, Stop: order.Down, Start: order.Up, Grace: c.KubeletShutdownGracePeriod, Logger: o.Logger,
	}
	if o.Client != nil {
		options.Say = func(ctx context.Context) error { return notify.NotReady(ctx, o.Client, o.Node) }
	}
	g.down = nodedown.New(options)
	g.runs = append(g.runs, g.down.Run)
}

// order starts the runtime, waits until it answers, and then the kubelet until its lease is renewed. A runtime
// that is a unit is left to systemd.
func (g *Guard) order(c *Config, o *Options, kubelet, runtime guard.Service) service.Order {
	var steps []service.Step
	if len(c.RuntimeCommand) > 0 {
		steps = append(steps, service.Step{Service: runtime, Ready: func(ctx context.Context) error {
			return collect.RuntimeReady(ctx, o.Runtime)
		}})
	}
	steps = append(steps, service.Step{Service: kubelet, Ready: func(ctx context.Context) error {
		return registered(ctx, o, kubelet)
	}})
	return service.Order{Steps: steps, Log: o.Logger}
}

// registered reports, by its error, that the node has no lease that this process of the kubelet has renewed.
func registered(ctx context.Context, o *Options, kubelet guard.Service) error {
	if o.Client == nil {
		return nil
	}
	process, err := kubelet.State(ctx)
	if err != nil {
		return err
	}
	if !process.Exists {
		return errors.New("it has ended")
	}
	lease, err := o.Client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(ctx, o.Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(process.Started) {
		return errors.New("the lease is not renewed")
	}
	return nil
}
