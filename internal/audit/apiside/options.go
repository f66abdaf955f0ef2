package apiside

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Defaults of the options.
const (
	DefaultQuiet   = 100 * time.Second
	DefaultConfirm = time.Minute
	DefaultTimeout = 20 * time.Second
	DefaultLease   = 10 * time.Second
)

// Options configure a [Side]. Config and Node are required.
type Options struct {
	// Config is how to reach the server. The user needs list and watch of pods (with the field selector
	// spec.nodeName), of nodes, and of leases in kube-node-lease.
	Config *rest.Config
	// Node is the name of the node.
	Node string

	// Quiet is how long a watch may be silent before it is closed and the objects are listed again.
	// Servers send a bookmark about once a minute.
	Quiet time.Duration
	// Confirm is the time between two requests that confirm that the watch of pods has missed nothing.
	Confirm time.Duration
	// LeasePace is the time between two reads of the lease, which a kubelet renews each 10 s.
	LeasePace time.Duration
	// Timeout is how long a list, or the beginning of a watch, may take.
	Timeout time.Duration

	// Changed is called for each pod that has changed, and with an empty UID when the Node or its lease changes or the
	// side begins or ceases to answer. It must return at once.
	Changed func(types.UID)
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.Quiet = cmp.Or(o.Quiet, DefaultQuiet)
	o.Confirm = cmp.Or(o.Confirm, DefaultConfirm)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.LeasePace = cmp.Or(o.LeasePace, DefaultLease)
	if o.Changed == nil {
		o.Changed = func(types.UID) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Config == nil {
		problems = append(problems, errors.New("no Config"))
	}
	if o.Node == "" {
		problems = append(problems, errors.New("no Node"))
	}
	if o.Quiet < 0 || o.Confirm < 0 || o.Timeout < 0 {
		problems = append(problems, errors.New("negative Quiet, Confirm or Timeout"))
	}
	return errors.Join(problems...)
}
