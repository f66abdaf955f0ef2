package agent

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/node/shutdown"
	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/status"
)

// Options are the settings of an agent by its program, as opposed to its operator, who sets the
// [Config]. Either Runtime or NewRuntime is required; all other fields have defaults.
type Options struct {
	// Runtime runs the pods. The agent uses the optional interfaces of package runtime that Runtime
	// implements: for example, the agent calls Run of a [runtime.Runner]. The agent does not close
	// Runtime.
	Runtime runtime.Runtime
	// NewRuntime creates the runtime instead, with the services of the node. If the runtime is an
	// [io.Closer], the agent closes it.
	NewRuntime func(NodeServices) (runtime.Runtime, error)

	// Successor creates the runtime instead of NewRuntime if the previous agent in this process, with the same Memory and state directory,
	// has ended with the cause [ErrReload]. Former is the runtime of the previous agent, whose Run has ended and which is not closed. The
	// returned runtime takes over containers and clients, and closes the resources that both runtimes share. Requests to the kubelet's API
	// then continue through the reload. If nil, the former runtime is closed, NewRuntime creates another runtime, and requests end with an
	// error.
	Successor func(former runtime.Runtime, services NodeServices) (runtime.Runtime, error)

	// RESTConfig is the connection to the API server, instead of the kubeconfig of the [Config].
	// The config is copied; its rate limit is not used, because the status manager has its own. The
	// user may be any user with the rights of a node, such as a service account.
	RESTConfig *rest.Config

	// Version is the version of the program; "dev" if empty.
	Version string
	// Logger defaults to a text logger on standard error.
	Logger *slog.Logger
	// Metrics receives the metrics of the node and is served at /metrics. If nil, the agent creates a
	// registry.
	Metrics Registry
	// Machine reads the capacity and the addresses of the node. If nil, the agent reads the machine
	// that it runs on. Resources with capacity 0 are never under pressure.
	Machine func() (node.Reading, error)
	// Supervisor receives the messages of sd_notify. The zero value disables them.
	Supervisor Supervisor
	// Host announces shutdowns of the machine, as logind does. If nil, shutdowns are not announced.
	Host shutdown.Host

	// Reload is called when the credentials are for another API server: end Run with the cause [ErrReload] and
	// create another agent. If nil, such changes are only logged.
	Reload func()
	// Memory passes state from one agent to the next in this process, as in a reload. The program closes Memory.
	Memory *Memory

	// KubeletAPI creates the server of the kubelet's API, if the [Config] has an address for the server:
	// set it to kubeletapi.ForNode. If nil, the API cannot be served, and its code is not linked.
	KubeletAPI func(inside.Serving) (inside.Server, error)
	// Observer receives each change of a pod's status and of its delivery. Its methods are called under locks and
	// must return at once. If the value also implements the Observer interfaces of the prober and the workers, or
	// Announce, which is called with the UID when the table of pods has changed, the agent uses them. Nil: no
	// observer.
	Observer status.Observer
	// Shown is the config that /configz shows; the [Config] if nil. It must hold no secrets.
	Shown func() any

	// machineInterval is how often the machine is read; tests shorten it.
	machineInterval time.Duration
	// apiPatience is how long static pods wait for the API at the start, credentialsInterval how often the kubeconfig is
	// looked at; tests shorten them.
	apiPatience, credentialsInterval time.Duration
	// lease is how long the lease of the node lasts; 0 is the default of package node. Tests shorten it.
	lease time.Duration
}

// Registry is a registry of metrics such as [prometheus.Registry].
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// NodeServices are the services of a node for its runtime. The functions may be called from any
// goroutine once NewRuntime has returned.
type NodeServices struct {
	// Dir is the directory for the state of the runtime; it need not exist yet.
	Dir string
	// Version is the version of the program.
	Version string
	// Addresses returns the IP addresses of the node, the primary address first. They can change.
	Addresses func() []string
	// Allocatable returns the allocatable resources of the node.
	Allocatable func() v1.ResourceList
	// Objects reads config maps, secrets and tokens. Nil without an API server.
	Objects volume.Objects
	// Client is the node's client of the API server. Nil without an API server.
	Client kubernetes.Interface
	// APIServer is the host and port of the API server; empty if more than host and port is needed
	// to reach it.
	APIServer string
	// Event sends an event of a pod, or of one of its containers.
	Event func(pod *v1.Pod, container, eventType, reason, message string)
	// Logger is the logger of the agent.
	Logger *slog.Logger
}

// Validate returns all errors in the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Runtime == nil && o.NewRuntime == nil {
		problems = append(problems, errors.New("agent: options: Runtime and NewRuntime are nil: nothing would run the pods"))
	}
	if o.Runtime != nil && o.NewRuntime != nil {
		problems = append(problems, errors.New("agent: options: Runtime and NewRuntime are both set; want one"))
	}
	return errors.Join(problems...)
}

func (o *Options) setDefaults(config Config) {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Memory == nil {
		o.Memory = &Memory{forgets: true}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Machine == nil {
		o.Machine = func() (node.Reading, error) { return node.ReadMachine(config.StateDir) }
	}
	o.machineInterval = cmp.Or(o.machineInterval, machineInterval)
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	o.apiPatience = cmp.Or(o.apiPatience, apiPatience)
}
