package worker

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// Options configure the workers. Runtime and Status are required.
type Options struct {
	Runtime runtime.Runtime
	Status  Status

	// Prober runs the probes. Without one a container is started and ready while it runs.
	Prober Prober

	// Recorder takes the events of pods, if set.
	Recorder Recorder

	// Observer receives admissions, hooks and ends, if set.
	Observer Observer

	// Admit decides whether a pod may run beside the active pods; nil admits all. It is called once in
	// a pod's life, for one pod at a time, after the runtime's own Check; it must be quick.
	// [fit.Check] is the usual implementation.
	Admit func(pod *v1.Pod, active []*v1.Pod) *fit.Rejection

	// HostIPs returns the addresses of the node, the primary one first; nil means that
	// statuses carry none. It is called for each status and must be quick.
	HostIPs func() []string

	// Version is the program's version. Servers of httpGet hooks see it as User-Agent
	// statusd-lifecycle/VERSION.
	Version string

	// HTTP runs the httpGet hooks of containers. By default, certificates are not
	// verified and redirects are followed to the same host only, as the kubelet does it.
	HTTP *http.Client

	// OnForgotten, if set, is called when nothing of a removed pod is left here: its containers
	// have ended, its last status was reported, and its status is about to be removed. It is
	// called once all sources have synced, must be quick, and must not call the Workers.
	OnForgotten func(uid types.UID)

	// Memory passes back-offs of containers to the next Workers of the process, if set.
	Memory *Memory

	// Registerer gets the metrics of workers. Without one they are kept but not exported.
	Registerer prometheus.Registerer

	// Resync is how often a pod gets a turn even if nothing seems to have happened.
	// Default 1 min.
	Resync time.Duration

	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Status is the workers' interface to the status manager.
type Status interface {
	Reporter
	Keeper
}

// Reporter receives the workers' observations of their pods.
type Reporter interface {
	SetPodStatus(pod *v1.Pod, status v1.PodStatus) (changed bool, err error)
	GetPodStatus(uid types.UID) (v1.PodStatus, bool)
	ObserveTermination(uid types.UID, containerID string, how v1.ContainerStateTerminated) error
	TerminatePod(pod *v1.Pod) error
}

// Keeper stores the allocations of pods, and forgets pods.
type Keeper interface {
	SetPodAllocation(pod *v1.Pod) error
	GetPodAllocation(uid types.UID) (podstatus.Allocation, bool)
	Resizes
	RemoveOrphanedStatuses(known map[types.UID]bool)
	Forget(uid types.UID)
}

// Resizes remembers how the resizes of pods stand.
type Resizes interface {
	GetPodResizeConditions(uid types.UID) []v1.PodCondition
	SetPodResizePendingCondition(uid types.UID, reason, message string, observedGeneration int64) (changed bool)
	SetPodResizeInProgressCondition(uid types.UID, reason, message string, observedGeneration int64) (generation int64, changed bool)
	ClearPodResizePendingCondition(uid types.UID)
	ClearPodResizeInProgressCondition(uid types.UID) (generation int64, cleared bool)
}

// Prober runs the probes of pods. Its methods are called from the goroutine of the pod and must not
// wait for a probe. It reports results by [Workers.ContainerUnhealthy] and [Workers.Sync].
type Prober interface {
	// AddPod starts the probes of the pod's containers that are not probed yet.
	AddPod(pod *v1.Pod)
	// UpdatePodStatus sets Ready and Started of each container of the status from the probe results of
	// its container ID. For a running container that was already reported under this ID the status
	// comes with the values reported last.
	UpdatePodStatus(pod *v1.Pod, status *v1.PodStatus)
	// StopLivenessAndStartup ends the probes that could stop a container; the pod ends.
	StopLivenessAndStartup(uid types.UID)
	// RemovePod ends all probes of the pod: none of its containers runs.
	RemovePod(uid types.UID)
}

// Recorder takes the events of pods. It must not block.
type Recorder interface {
	// Event is about a container of the pod, or about the whole pod if container is empty.
	// The type is v1.EventTypeNormal or v1.EventTypeWarning.
	Event(pod *v1.Pod, container, eventType, reason, message string)
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Runtime == nil {
		problems = append(problems, errors.New("option Runtime is not set: there is nothing to run pods with"))
	}
	if o.Status == nil {
		problems = append(problems, errors.New("option Status is not set: there is nothing to report to; status.New makes a manager"))
	}
	if o.Resync < 0 {
		problems = append(problems, errors.New("option Resync is negative"))
	}
	return errors.Join(problems...)
}

func (o *Options) setDefaults() {
	if o.Prober == nil {
		o.Prober = noProbes{}
	}
	if o.Recorder == nil {
		o.Recorder = noEvents{}
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	if o.Admit == nil {
		o.Admit = func(*v1.Pod, []*v1.Pod) *fit.Rejection { return nil }
	}
	if o.HostIPs == nil {
		o.HostIPs = func() []string { return nil }
	}
	if o.OnForgotten == nil {
		o.OnForgotten = func(types.UID) {}
	}
	if o.HTTP == nil {
		o.HTTP = newHookClient()
	}
	if o.Resync == 0 {
		o.Resync = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// noProbes is the prober of a node without probes.
type noProbes struct{}

func (noProbes) AddPod(*v1.Pod)                   {}
func (noProbes) StopLivenessAndStartup(types.UID) {}
func (noProbes) RemovePod(types.UID)              {}

// UpdatePodStatus marks running containers started and ready, and completed init containers ready.
func (noProbes) UpdatePodStatus(pod *v1.Pod, status *v1.PodStatus) {
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		runs := c.State.Running != nil
		c.Ready, c.Started = runs, &runs
	}
	for i := range status.InitContainerStatuses {
		c := &status.InitContainerStatuses[i]
		runs := c.State.Running != nil
		c.Ready, c.Started = runs, &runs
		if sidecarIndex(pod, c.Name) < 0 {
			c.Ready = c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		}
	}
}

type noEvents struct{}

func (noEvents) Event(*v1.Pod, string, string, string, string) {}
