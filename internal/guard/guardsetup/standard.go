package guardsetup

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/collect"
	"github.com/statusd/statusd/internal/guard/evidence"
	"github.com/statusd/statusd/internal/guard/fleet"
	"github.com/statusd/statusd/internal/guard/nodedown"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/internal/guard/service"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/internal/node/shutdown/logind"
	"github.com/statusd/statusd/internal/nodeclient"
)

// Options are a program's settings, as opposed to the operator's. Node and StateDir are required.
type Options struct {
	Node     string
	StateDir string
	// Kubelet and RuntimeService replace the services that the config names, if they are set.
	Kubelet, RuntimeService guard.Service
	// Outputs receive the guard's notices.
	Outputs []guard.Output
	// Client reads the lease, and reports the Node as not ready before a shutdown; nil: neither is done.
	Client kubernetes.Interface
	// Server is the kubelet's server, as in https://127.0.0.1:10250, with its Credentials. Empty: not
	// queried.
	Server      string
	Credentials nodeclient.Credentials
	// Runtime is the CRI socket, as this process sees it, and KubeletRoot the kubelet's directory on the host, whose root is that of
	// Process.
	Runtime, KubeletRoot string
	// Process is how the kubelet's process is found where the config names no unit; by the name kubelet if
	// Process has neither name nor file. It says where the processes of the machine are, too.
	Process hostproc.Finder
	// Every is how often the evidence is read; 3 s if 0. Changes of the unit are seen at once.
	Every time.Duration
	// Bus is the address of D-Bus; the system bus if empty.
	Bus string
	// Behind, Lists and Maintenance are the audit's facts; each may be nil.
	Behind      func(now time.Time) guard.Fact[guard.Behind]
	Lists       func(now time.Time) guard.Fact[guard.Answer]
	Maintenance func(now time.Time) guard.Fact[guard.Maintenance]
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
	stateFile   = "guard.json"
	evidenceDir = "guard"
	logLines    = 2000
	logBytes    = 1 << 20
)

// The evidence of how many restarts is kept, and how many bytes it may take.
const (
	evidenceCount = 20
	evidenceBytes = 64 << 20
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

// New makes a guard. New starts nothing.
func New(c Config, o Options) (*Guard, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Guard{}
	kubelet, runtime := g.services(&c, &o)
	g.shutdowns(&c, &o, kubelet)
	g.server = g.client(&o)
	if err := g.collects(&c, &o, kubelet); err != nil {
		return nil, err
	}
	store, err := evidence.New(evidence.Options{
		Dir: filepath.Join(o.StateDir, evidenceDir), Parts: parts(&c, &o, g.server), Count: evidenceCount, Bytes: evidenceBytes,
	})
	if err != nil {
		return nil, err
	}
	options := guard.Options{
		Kubelet: kubelet, Runtime: runtime, Collect: g.collector.Collect, Policy: c.policy(), Keep: store.Keep, Outputs: o.Outputs,
		StateFile: filepath.Join(o.StateDir, stateFile), Every: cmp.Or(o.Every, 3*time.Second),
		Record: o.Record, Changed: o.Changed, Registerer: o.Registerer, Logger: o.Logger,
	}
	if c.Semaphore != "" && o.Client != nil {
		options.Fleet = fleet.New(fleet.Options{Leases: o.Client.CoordinationV1().Leases(c.Semaphore), Node: o.Node, Nodes: fleet.Count(o.Client)})
	}
	if g.Guard, err = guard.New(options); err != nil {
		return nil, err
	}
	return g, nil
}

// Run runs the guard and its outputs until ctx ends. Run returns when all their goroutines have
// ended.
func (g *Guard) Run(ctx context.Context) error {
	defer g.Close()
	var parts sync.WaitGroup
	defer parts.Wait()
	for _, run := range g.runs {
		parts.Go(func() { _ = run(ctx) })
	}
	return g.Guard.Run(ctx)
}

// Close closes the resources of New. Run does so by itself.
func (g *Guard) Close() error {
	for _, end := range g.closes {
		end()
	}
	g.closes = nil
	return nil
}

// services are those of kubelet and runtime; the runtime's may be nil.
func (g *Guard) services(c *Config, o *Options) (kubelet, runtime guard.Service) {
	if o.Kubelet != nil {
		return o.Kubelet, o.RuntimeService
	}
	unit := func(name string) guard.Service {
		s := service.NewSystemd(name, service.SystemdOptions{Address: o.Bus, Proc: o.Process.Table()})
		g.closes = append(g.closes, s.Close)
		return s
	}
	if c.RuntimeUnit != "" {
		runtime = unit(c.RuntimeUnit)
	}
	if c.Unit != "" {
		return unit(c.Unit), runtime
	}
	finder := o.Process
	finder.Name = cmp.Or(finder.Name, "kubelet")
	return service.Found{Finder: finder, Command: c.RestartCommand}, runtime
}

// client returns the client for the kubelet's server, or nil.
func (g *Guard) client(o *Options) *http.Client {
	if o.Server == "" {
		return nil
	}
	client, err := nodeclient.Kubelet(o.Credentials)
	err = cmp.Or(err, o.Credentials.CheckToken())
	if err != nil {
		o.Logger.Warn("the kubelet's server is not asked", "err", err)
		return nil
	}
	g.closes = append(g.closes, client.CloseIdleConnections)
	return client
}

func (g *Guard) collects(c *Config, o *Options, kubelet guard.Service) (err error) {
	certificate, root := c.CertificateFile, ""
	if o.KubeletRoot != "" {
		root = filepath.Join("/", o.Process.Root, o.KubeletRoot)
		certificate = cmp.Or(certificate, filepath.Join(o.KubeletRoot, "pki", "kubelet-client-current.pem"))
	}
	var under func() bool
	if g.down != nil {
		under = g.down.Under
	}
	g.collector, err = collect.New(collect.Options{
		ShuttingDown: under,
		Service:      kubelet, Healthz: c.HealthzURL, Server: o.Server, ServerClient: g.server, Client: o.Client, Node: o.Node,
		Runtime: o.Runtime, Root: root, Certificate: certificate, HostRoot: o.Process.Root, Behind: o.Behind, Lists: o.Lists, Maintenance: o.Maintenance,
	})
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	g.closes = append(g.closes, g.collector.Close)
	return nil
}

// parts are the files of the evidence of a restart.
func parts(c *Config, o *Options, client *http.Client) (all []evidence.Part) {
	switch {
	case c.LogFile != "":
		all = append(all, evidence.Tail("kubelet.log", o.Process.Root, c.LogFile, logBytes))
	case c.Unit != "":
		all = append(all, evidence.Journal(c.Unit, logLines))
	}
	if client != nil {
		all = append(all, evidence.Goroutines(o.Server, client))
	}
	if o.Audit != nil {
		all = append(all, evidence.JSON("audit.json", o.Audit))
	}
	return all
}

// runs reports whether a service runs or is about to run, or its state is unknown.
func runs(s guard.Service) func(context.Context) bool {
	return func(ctx context.Context) bool {
		p, err := s.State(ctx)
		return err != nil || p.Exists || p.Restarting || p.Starting
	}
}

// shutdowns follows the shutdowns of the machine.
func (g *Guard) shutdowns(c *Config, o *Options, kubelet guard.Service) {
	if !c.Shutdown {
		return
	}
	options := nodedown.Options{
		Host: &logind.Host{Address: o.Bus}, Stop: kubelet.Stop, Start: kubelet.Start, Runs: runs(kubelet), Grace: c.KubeletShutdownGracePeriod, Logger: o.Logger,
	}
	if o.Client != nil {
		options.Say = func(ctx context.Context) error { return notify.NotReady(ctx, o.Client, o.Node) }
	}
	g.down = nodedown.New(options)
	g.runs = append(g.runs, g.down.Run)
}
