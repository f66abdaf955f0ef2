package machineside

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Defaults of the options.
const (
	DefaultKubeletRoot = "/var/lib/kubelet"
	DefaultCgroupRoot  = "/sys/fs/cgroup"
	DefaultManifests   = "/etc/kubernetes/manifests"
	DefaultProcess     = "kubelet"
	DefaultPace        = 10 * time.Second
	DefaultLeast       = time.Second
	DefaultTimeout     = 10 * time.Second
	DefaultMaxEntries  = 100_000
)

// Options configure a [Side]. Node is required.
type Options struct {
	// Node is the name of the node; the names of static pods end in it.
	Node string
	// HostRoot is where the host's root is mounted; "/" if empty.
	HostRoot string
	// HostProc is where the host's processes are; proc below HostRoot if empty.
	HostProc string

	// KubeletRoot and CgroupRoot are directories of the host, Manifests a directory or file: the kubelet's
	// staticPodPath.
	KubeletRoot string
	CgroupRoot  string
	Manifests   string

	// PIDFile has the process ID of the kubelet. If it is empty, the kubelet is the oldest process
	// of the name Process.
	PIDFile string
	Process string

	// Pace is the time between two looks, Least the shortest such time after [Side.Refresh].
	Pace, Least time.Duration
	// Timeout is how long a look may take before the machine is unknown.
	Timeout time.Duration
	// MaxEntries is how many entries of directories one look reads.
	MaxEntries int

	// Changed is called for each pod whose facts have changed, and with an empty UID when the side begins or
	// ceases to answer, or when the kubelet's process or the manifests change. It must return at once.
	Changed func(types.UID)
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		value     *string
		otherwise string
	}{
		{&o.HostRoot, "/"}, {&o.KubeletRoot, DefaultKubeletRoot}, {&o.CgroupRoot, DefaultCgroupRoot},
		{&o.Manifests, DefaultManifests}, {&o.Process, DefaultProcess},
	} {
		if *d.value == "" {
			*d.value = d.otherwise
		}
	}
	o.HostProc = cmp.Or(o.HostProc, filepath.Join(o.HostRoot, "proc"))
	o.Pace = cmp.Or(o.Pace, DefaultPace)
	o.Least = cmp.Or(o.Least, min(DefaultLeast, o.Pace))
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxEntries = cmp.Or(o.MaxEntries, DefaultMaxEntries)
	if o.Changed == nil {
		o.Changed = func(types.UID) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Node == "" {
		problems = append(problems, errors.New("no Node"))
	}
	for name, path := range map[string]string{
		"HostRoot": o.HostRoot, "HostProc": o.HostProc, "KubeletRoot": o.KubeletRoot, "CgroupRoot": o.CgroupRoot,
		"Manifests": o.Manifests, "PIDFile": o.PIDFile,
	} {
		if path != "" && !filepath.IsAbs(path) {
			problems = append(problems, fmt.Errorf("%s %q is not an absolute path", name, path))
		}
	}
	if o.MaxEntries < 0 || o.Timeout < 0 {
		problems = append(problems, errors.New("MaxEntries and Timeout must be positive"))
	}
	return errors.Join(problems...)
}
