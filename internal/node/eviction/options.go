package eviction

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// Options configure a [Manager]. Read, Pods and Evict are required.
type Options struct {
	// Thresholds are the thresholds to enforce: see [Config]. Without thresholds there is no pressure.
	Thresholds []Threshold
	// MaxPodGrace bounds how long a pod may take to end for a soft threshold; 0: its own grace period does.
	MaxPodGrace time.Duration
	// Transition is how long a condition stays after its last observation; 5 min if zero.
	Transition time.Duration
	// Interval is the time between two readings; 10 s if zero.
	Interval time.Duration

	// Read returns the available amounts.
	Read func() (Observations, error)
	// Pods returns the pods with running containers.
	Pods func() []*v1.Pod
	// Requests returns the requests of a pod; nil means none.
	Requests func(*v1.Pod) v1.ResourceList
	// QOSClass is the class of a pod; nil means the class of its status.
	QOSClass func(*v1.Pod) v1.PodQOSClass
	// Usage measures a pod; nil means that nothing is known of any. [runtime.Meter] does it.
	Usage func(ctx context.Context, pod *v1.Pod) (runtime.Usage, error)
	// Reclaim deletes the remains of pods that have ended, if set.
	Reclaim func(ctx context.Context) error
	// Evict ends a pod with the message in its status and within the grace, and returns a
	// channel that is closed once it has ended. It must not block.
	Evict func(pod *v1.Pod, message string, grace time.Duration) (ended <-chan struct{})

	// Recorder takes the events of pods that are evicted, if set.
	Recorder Recorder
	// NodeEvent takes the events of the node itself, if set. It must not block.
	NodeEvent func(eventType, reason, message string)
	// Registerer gets the metric statusd_evictions_total. Without one it is kept but not
	// exported.
	Registerer prometheus.Registerer
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Recorder takes the events of pods. It must not block.
type Recorder interface {
	Event(pod *v1.Pod, container, eventType, reason, message string)
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Read == nil {
		problems = append(problems, errors.New("option Read is not set: there is nothing to see pressure by"))
	}
	if o.Pods == nil {
		problems = append(problems, errors.New("option Pods is not set: there is nothing to evict"))
	}
	if o.Evict == nil {
		problems = append(problems, errors.New("option Evict is not set: nothing would end a pod"))
	}
	if o.MaxPodGrace < 0 || o.Transition < 0 || o.Interval < 0 {
		problems = append(problems, errors.New("periods must not be negative"))
	}
	return errors.Join(problems...)
}

func (o *Options) setDefaults() {
	if o.Transition == 0 {
		o.Transition = 5 * time.Minute
	}
	if o.Interval == 0 {
		o.Interval = 10 * time.Second
	}
	if o.Requests == nil {
		o.Requests = func(*v1.Pod) v1.ResourceList { return nil }
	}
	if o.QOSClass == nil {
		o.QOSClass = func(pod *v1.Pod) v1.PodQOSClass { return pod.Status.QOSClass }
	}
	if o.Usage == nil {
		o.Usage = func(context.Context, *v1.Pod) (runtime.Usage, error) { return runtime.Usage{}, runtime.ErrNotFound }
	}
	if o.Reclaim == nil {
		o.Reclaim = func(context.Context) error { return nil }
	}
	if o.Recorder == nil {
		o.Recorder = noEvents{}
	}
	if o.NodeEvent == nil {
		o.NodeEvent = func(string, string, string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

type noEvents struct{}

func (noEvents) Event(*v1.Pod, string, string, string, string) {}
