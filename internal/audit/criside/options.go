package criside

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Defaults of the options.
const (
	DefaultEndpoint = "unix:///run/containerd/containerd.sock"
	DefaultPace     = 2 * time.Second
	DefaultLeast    = time.Second
	DefaultTimeout  = 3 * time.Second
)

// Options configure a [Side].
type Options struct {
	// Endpoint is the CRI socket of the runtime.
	Endpoint string
	// Pace is the time between two lists, Least the shortest such time after [Side.Refresh].
	Pace, Least time.Duration
	// Timeout is how long a call may take.
	Timeout time.Duration

	// Changed is called for each pod whose sandboxes or containers have changed, and with an empty UID when the side begins
	// or ceases to answer. It must return at once.
	Changed func(types.UID)
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.Endpoint = cmp.Or(o.Endpoint, DefaultEndpoint)
	o.Pace = cmp.Or(o.Pace, DefaultPace)
	o.Least = cmp.Or(o.Least, min(DefaultLeast, o.Pace))
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Changed == nil {
		o.Changed = func(types.UID) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	if o.Timeout < 0 {
		return errors.New("negative Timeout")
	}
	return nil
}
