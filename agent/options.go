package agent

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/shutdown"
	"github.com/statusd/statusd/volume"
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

	// RESTConfig is how to reach the API server, instead of the kubeconfig of the [Config].
	// It is copied; its limit of requests is not used, because the status manager has one.
	// Any user that may do the work of this node will do, such as a service account.
	RESTConfig *rest.Config

	// Version is that of the program; "dev" if empty.
	Version string
	// Logger is one to standard error, as the config has it, if nil.
	Logger *slog.Logger
	// Machine reads the capacity and the addresses of the node. If nil, they are those of
	// the machine that this program runs on. Resources of which the capacity is 0 are never
	// under pressure.
	Machine func() (node.Reading, error)
	// Supervisor receives the messages of sd_notify. The zero value disables them.
	Supervisor Supervisor
	// Host announces shutdowns of the machine, as logind does. If nil, there are no
	// announcements.
	Host shutdown.Host

	// Reload is called when the credentials have changed: end Run with the cause [ErrReload] and make
	// another agent. If nil, changes are only logged.
	Reload func()

	// machineInterval is how often the machine is read; tests shorten it.
	machineInterval time.Duration
	// registerer takes the metrics in place of the agent's registry; tests look at what is registered.
	registerer prometheus.Registerer
	// lease is how long the lease of the node lasts; 0 is the default of package node. Tests shorten it.
	lease time.Duration
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
	if o.Logger == nil {
		o.Logger = config.Log.Logger(os.Stderr)
	}
	if o.Machine == nil {
		o.Machine = func() (node.Reading, error) { return node.ReadMachine(config.StateDir) }
	}
	if o.machineInterval == 0 {
		o.machineInterval = machineInterval
	}
}
