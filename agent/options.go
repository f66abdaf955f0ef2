package agent

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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

// Options are what a program decides about its agent, as opposed to its operator, who has
// the [Config]. One of Runtime and NewRuntime is required; all else has defaults.
type Options struct {
	// Runtime runs the pods. Interfaces of package runtime that it implements beside
	// [runtime.Runtime] are used: with [runtime.Runner], for example, the agent runs it.
	// It is not closed by the agent, whose caller has opened it.
	Runtime runtime.Runtime
	// NewRuntime makes the runtime instead, out of what the node offers. The agent closes
	// that runtime when it is closed itself, if it is an [io.Closer].
	NewRuntime func(NodeServices) (runtime.Runtime, error)

	// Successor makes the runtime instead of NewRuntime where the agent before in this process, with the same Memory and state
	// directory, has ended with the cause [ErrReload]: out of the runtime of that agent, which Run no longer runs and which is not closed.
	// The runtime that it returns takes over containers and clients, and closes what both have in common. Requests to the kubelet's API go
	// on through the reload then. If nil, the former runtime is closed, NewRuntime makes another one, and requests end with an error.
	Successor func(former runtime.Runtime, services NodeServices) (runtime.Runtime, error)

	// RESTConfig is how to reach the API server, instead of the kubeconfig of the [Config].
	// It is copied; its limit of requests is not used, because the status manager has one.
	// Any user that may do the work of this node will do, such as a service account.
	RESTConfig *rest.Config

	// Version is that of the program; "dev" if empty.
	Version string
	// Logger is one to standard error, in text, if nil.
	Logger *slog.Logger
	// Metrics takes the metrics of the node; /metrics shows what it has. A registry of its own if nil.
	Metrics Registry
	// Machine reads the capacity and the addresses of the node. If nil, they are those of
	// the machine that this program runs on. Resources of which the capacity is 0 are never
	// under pressure.
	Machine func() (node.Reading, error)
	// Supervisor receives the messages of sd_notify. The zero value disables them.
	Supervisor Supervisor
	// Host announces shutdowns of the machine, as logind does. If nil, there are no
	// announcements.
	Host shutdown.Host

	// Reload is called when the credentials are for another API server: end Run with the cause [ErrReload] and make
	// another agent. If nil, such changes are only logged.
	Reload func()
	// Memory hands on what must outlive an agent from one to the next in this process, as at a reload. The program closes it.
	Memory *Memory

	// KubeletAPI makes the server of the kubelet's API, if the [Config] has an address for it: set it to
	// kubeletapi.ForNode. If nil, none can be served, and the program links none.
	KubeletAPI func(inside.Serving) (inside.Server, error)
	// Observer sees each change of a pod's status and how far its delivery is. Its methods are called under locks and
	// must return at once. Interfaces Observer of the prober and the workers, and Announce, which is called with the
	// UID when the table of pods has changed, are used if it implements them. Nil: there is none.
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

// Registry is a registry of metrics, as [prometheus.Registry] is.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// NodeServices is what a node offers to its runtime. The functions may be called from any
// goroutine once NewRuntime has returned.
type NodeServices struct {
	// Dir is a directory for what the runtime must remember; it need not exist yet.
	Dir string
	// Version is that of the program.
	Version string
	// Addresses returns the IP addresses of the node, the primary one first. They can change.
	Addresses func() []string
	// Allocatable returns what the node has for pods.
	Allocatable func() v1.ResourceList
	// Objects reads config maps, secrets and tokens. It is nil if there is no API server.
	Objects volume.Objects
	// Client is that of the API server, as the node. It is nil if there is none.
	Client kubernetes.Interface
	// APIServer is the host and port of the API server; empty if it is not reached by them alone.
	APIServer string
	// Event sends an event of a pod, or of one of its containers.
	Event func(pod *v1.Pod, container, eventType, reason, message string)
	// Logger is that of the agent.
	Logger *slog.Logger
}

// Validate reports everything that is wrong with the options.
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
	o.Memory.node.CordonFile = filepath.Join(config.StateDir, cordonFile)
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
