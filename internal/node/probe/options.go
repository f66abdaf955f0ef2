package probe

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// Options configure a [Prober]. Exec, Status and Unhealthy are required.
type Options struct {
	// Exec runs a command inside a container, as [runtime.Runtime] does.
	Exec func(ctx context.Context, containerID string, command []string) (runtime.ExecResult, error)

	// Status is the status manager.
	Status Status

	// Unhealthy is called for each run of a container that failed its liveness or startup
	// probe: once, since the run is not probed after that. It must not block.
	Unhealthy func(Failure)

	// Sync, if set, triggers a turn of the worker of a pod: one of its containers has started, or
	// Status did not know the container of a result. It must not block.
	Sync func(uid types.UID)

	// Recorder receives an event for each probe that failed. It may be nil.
	Recorder Recorder

	// Observer, if set, receives each change of a verdict. It must not block.
	Observer Observer
	// Registerer gets the metrics of probes. Without one they are kept but not exported.
	Registerer prometheus.Registerer
	// PodRegisterer gets metrics of each container under the names that the kubelet serves at
	// /metrics/probes. They are many, and go with the pods.
	PodRegisterer prometheus.Registerer

	// Version is the program's version. Servers see it as User-Agent statusd-probe/VERSION.
	Version string

	// Spread returns the delay of the first probe of a container that ran before the agent
	// did, so that a restart of the agent does not send all probes at once. By default it
	// is a random part of the period.
	Spread func(period time.Duration) time.Duration

	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Status is the prober's interface to the status manager. Errors are logged and have no other
// effect, since the next status of the pod has the same values.
type Status interface {
	GetPodStatus(uid types.UID) (v1.PodStatus, bool)
	SetContainerStartup(uid types.UID, containerID string, started bool) error
	SetContainerReadiness(uid types.UID, containerID string, ready bool) error
}

// Recorder records events of pods. It must not block.
type Recorder interface {
	Event(pod *v1.Pod, container, eventType, reason, message string)
}

// Observer receives the verdicts of probes.
type Observer interface {
	// ProbeVerdict is called when the verdict on a run of a container has changed, and after the first
	// series of probes.
	ProbeVerdict(Verdict)
}

// Verdict is the result of a series of probes.
type Verdict struct {
	Pod       *v1.Pod
	Container string
	Kind      runtime.ProbeKind
	// Passed: else the probe has failed.
	Passed bool
	// Probes is the number of equal results in a row; the last of them has the answer Message.
	Probes  int
	Message string
	At      time.Time
}

// Failure describes a failed liveness or startup probe of a container that still runs.
type Failure struct {
	Pod         types.UID
	Container   string
	ContainerID string
	// Kind is [runtime.LivenessProbe] or [runtime.StartupProbe].
	Kind runtime.ProbeKind
	// Message is the message of the last probe.
	Message string
	// Grace is the probe's terminationGracePeriodSeconds; nil means the pod's.
	Grace *int64
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Exec == nil {
		problems = append(problems, errors.New("no Exec: exec probes need the Exec of a runtime"))
	}
	if o.Status == nil {
		problems = append(problems, errors.New("no Status: readiness has nowhere to go; status.New makes a manager"))
	}
	if o.Unhealthy == nil {
		problems = append(problems, errors.New("no Unhealthy: a container that failed its liveness probe would not be stopped"))
	}
	return errors.Join(problems...)
}

func (o *Options) setDefaults() {
	if o.Sync == nil {
		o.Sync = func(types.UID) {}
	}
	if o.Recorder == nil {
		o.Recorder = noEvents{}
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	if o.Spread == nil {
		o.Spread = func(period time.Duration) time.Duration { return rand.N(period) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

type noEvents struct{}

func (noEvents) Event(*v1.Pod, string, string, string, string) {}

type noObserver struct{}

func (noObserver) ProbeVerdict(Verdict) {}
