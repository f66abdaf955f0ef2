package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/internal/podsapi"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/process/console"
	"github.com/statusd/statusd/kubeletapi"
)

// Process is a whole statusd run. See the package comment.
type Process struct {
	config     Config
	version    string
	log        *slog.Logger
	life       process.Life
	registerer prometheus.Registerer

	agent      *agent.Agent
	node       *inside.Node // the parts of agent
	console    *console.Console
	podsAPI    *podsapi.Server
	podsSocket net.Listener  // nil: not served
	known      chan struct{} // closed once rules can be evaluated
}

// New makes a node and the daemon's parts around it. New reports all errors that can be found before anything runs. It
// starts nothing: call [Process.Run], or [Process.Close] if Run will not be called. The options are the node's; New sets
// the kubelet's API, the observer and the content of /configz.
func New(config Config, options agent.Options) (*Process, error) {
	validate := config.Validate
	if options.RESTConfig != nil { // the node knows how to reach the API server, and checks the rest
		validate = config.validateDaemon
	}
	if err := validate(); err != nil {
		return nil, err
	}
	config = config.withoutProcessTaint()
	if options.Logger == nil {
		options.Logger = config.Log.Logger(os.Stderr)
	}
	if options.Version == "" {
		options.Version = "dev"
	}
	p := &Process{config: config, version: options.Version, log: options.Logger, known: make(chan struct{})}
	p.life = process.Life{Name: "run", Timeout: config.ShutdownTimeout, Supervisor: options.Supervisor, Logger: p.log, Alive: func() { p.node.Alive() }}
	if err := p.open(options); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// open makes the console, then the node, and connects them.
func (p *Process) open(options agent.Options) (err error) {
	config := p.config.Config
	name, err := process.NodeName(config.NodeName)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if options.Metrics == nil {
		options.Metrics = prometheus.NewRegistry()
	}
	p.registerer = options.Metrics
	p.console, err = console.New(console.Options{
		Node: name, StateDir: config.StateDir, Version: p.version, Healthz: config.HealthzBindAddress,
		Fronts: options.Memory.Fronts(), Registerer: p.registerer, Logger: p.log,
	}, &p.life)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	config.HealthzBindAddress = "" // the console serves it
	options.Observer, options.KubeletAPI, options.Shown = observed{p.console}, kubeletapi.ForNode, p.config.shown
	options.Supervisor = agent.Supervisor{}
	if p.agent, err = agent.New(config, options); err != nil {
		return err
	}
	p.life.OnClose(p.agent)
	p.node = p.agent.Inside()
	// The state is locked: no other statusd has the sockets.
	p.console.OpenSocket(p.config.QuerySocketPath(), &p.life)
	if p.podsSocket = process.OpenSocket(p.log, "pods", p.config.PodsSocketPath()); p.podsSocket != nil {
		p.life.OnClose(p.podsSocket)
	}
	if p.podsAPI, err = podsapi.New(podsapi.Options{Source: wholePods{p}}); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if err := p.console.Connect(p.shown()); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// shown is what the console gets of the node.
func (p *Process) shown() console.Process {
	nodes := &nodeHistory{Process: p}
	shown := console.Process{
		Facts: p, Logs: containerLogs{p.node}, Find: p.find, Endpoints: p.node.Endpoints, Subject: "agent", Records: nodes.records,
		Client: p.node.Client, Events: p.node.Events, OwnsNode: true, Machine: p.config.Machine.host(), Rules: p.config.Rules, Outputs: p.config.Outputs,
		Known: p.known, RestartContainer: p.restartContainer,
		Why: map[ruleset.ActionKind]string{ruleset.ActionRestartKubelet: "statusd is the kubelet of this node"},
	}
	if p.node.Client != nil {
		shown.Conditions = nodecondition.New(nodecondition.Options{Client: p.node.Client, Node: p.node.Name, Claimed: p.node.Object.Claimed(), Logger: p.log})
	}
	if p.config.Guard.Enabled {
		shown.NewGuard = p.newGuard
	}
	return shown
}

// find is the pod and the container of a process that a log names.
func (p *Process) find(victim *logs.Victim) (*v1.Pod, string) {
	pod, ok := p.node.Pods.ByUID(victim.UID)
	if !ok {
		return nil, ""
	}
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if isRun(c.ContainerID, victim.ContainerID) || c.LastTerminationState.Terminated != nil && isRun(c.LastTerminationState.Terminated.ContainerID, victim.ContainerID) {
			return pod, c.Name
		}
	}
	return pod, ""
}

// isRun reports whether a runtime has made an ID of a status, as in process://ID.
func isRun(full, id string) bool {
	_, of, ok := strings.Cut(full, "://")
	return ok && of == id
}

// Address is where the endpoints are served, empty if they are not.
func (p *Process) Address() string { return p.console.Address() }

// ServerAddress is where the kubelet's API is served, empty if it is not.
func (p *Process) ServerAddress() string { return p.agent.ServerAddress() }

// Run runs the process until ctx ends, then stops in order and within ShutdownTimeout, closes all resources, and
// returns. Containers keep running. Run may be called once.
func (p *Process) Run(ctx context.Context) error {
	p.log.Info("starting", "version", p.version, "node", p.node.Name, "standalone", p.node.Client == nil,
		"stateDir", p.config.StateDir, "manifests", p.config.Manifests, "endpoints", p.Address())
	own := []process.Part{{Name: "pods that rules need", Run: p.awaitKnown}}
	if p.podsSocket != nil {
		own = append(own, process.Part{Name: "pods socket", Run: func(ctx context.Context) error {
			return p.podsAPI.Run(ctx, netutil.LimitListener(p.podsSocket, process.MaxConnections))
		}})
	}
	return p.life.Run(ctx, slices.Concat(p.console.First(), own, p.node.Parts, p.console.Last()))
}

// Close closes the resources of New. Run does so by itself.
func (p *Process) Close() error { return p.life.Close() }

// DeleteState deletes all that a statusd of this config keeps in its state directory: see [agent.DeleteState].
func DeleteState(config Config) error {
	return agent.DeleteState(config.Config, append([]string{querySocket, podsSocket, guardFile + "*"}, console.StateFiles...)...)
}
