package observer

import (
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit/repair"
	"github.com/statusd/statusd/internal/process"
)

// Options are a program's settings of its observer, as opposed to the operator's [Config]. The zero
// value works.
type Options struct {
	// RESTConfig is how to reach the API server, instead of the kubeconfig of the [Config].
	RESTConfig *rest.Config
	// NewSides makes the sides, which call changed; server is the config for the API server. If nil, the
	// sides of the config are used.
	NewSides func(server *rest.Config, changed Changed) (Sides, error)

	// Version is the program's version; "dev" if empty.
	Version string
	// Logger is one to standard error, as the config has it, if nil.
	Logger *slog.Logger
	// Supervisor receives the messages of sd_notify. The zero value disables them.
	Supervisor Supervisor
	// Reload is called when the credentials are for another API server: end Run with the cause [ErrReload] and make
	// another observer. If nil, such changes are only logged.
	Reload func()
	// Fronts have the addresses of the observer before in this program; nil: no observer follows another.
	Fronts *process.Fronts

	// credentialsInterval is how often the kubeconfig is looked at; tests shorten it.
	credentialsInterval time.Duration
	// client is the client of tests.
	client kubernetes.Interface
	// runtime is what repairs do to the runtime, in tests.
	runtime repair.Runtime
	// registerer replaces the observer's registry in tests that read the registered metrics.
	registerer prometheus.Registerer
}

// Supervisor is systemd as the receiver of sd_notify(3) messages.
type Supervisor = process.Supervisor

// ErrReload as the cause of the end of Run's context means that another observer takes over in this
// process: systemd gets RELOADING=1, not STOPPING=1.
var ErrReload = process.ErrReload

func (o *Options) setDefaults(config Config) {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Logger == nil {
		o.Logger = config.Log.Logger(os.Stderr)
	}
}
