package virtualkubelet

import (
	"context"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Provider runs pods. The methods equal those of virtual-kubelet's PodLifecycleHandler. Optional interfaces are used
// if the provider implements them: [PodNotifier], [NodeProvider], [NodeConfigurer], [LogReader], [Executor],
// [Attacher], [PortForwarder], [StatsReader].
//
// For a pod that does not exist, return an error with a method NotFound() bool that returns true, an API NotFound
// error, or nil for pod and error.
type Provider interface {
	// CreatePod starts a pod. The environments of its containers are resolved already.
	CreatePod(ctx context.Context, pod *v1.Pod) error
	// UpdatePod is called when the spec, the labels or the annotations of a pod have changed.
	UpdatePod(ctx context.Context, pod *v1.Pod) error
	// DeletePod ends a pod and removes it. DeletePod may be called for a pod that is gone.
	DeletePod(ctx context.Context, pod *v1.Pod) error
	// GetPod returns a pod with its status.
	GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// GetPodStatus returns the status of a pod.
	GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error)
	// GetPods returns all pods of the provider. Pods that the API does not have are deleted.
	GetPods(ctx context.Context) ([]*v1.Pod, error)
}

// PodNotifier is a provider that reports changes. NotifyPods is called once, before any other method, and must
// return. The callback may be called from any goroutine and does not block. Other providers are polled.
type PodNotifier interface {
	NotifyPods(ctx context.Context, notify func(*v1.Pod))
}

// NodeProvider is a provider that reports the state of its node. While Ping fails, the Node is not Ready.
// NotifyNodeStatus must return; fields set in the Node passed to its callback replace labels, annotations,
// capacity, allocatable, addresses and node info, and conditions are added.
type NodeProvider interface {
	Ping(ctx context.Context) error
	NotifyNodeStatus(ctx context.Context, notify func(*v1.Node))
}

// NodeConfigurer is a provider that describes its Node: capacity, operating system, labels. ConfigureNode is called at
// the start.
type NodeConfigurer interface {
	ConfigureNode(ctx context.Context, node *v1.Node)
}

// LogReader is a provider for kubectl logs.
type LogReader interface {
	GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts ContainerLogOpts) (io.ReadCloser, error)
}

// Executor is a provider for kubectl exec. An error with a method ExitStatus() int is the exit code of the command.
type Executor interface {
	RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach AttachIO) error
}

// Attacher is a provider for kubectl attach.
type Attacher interface {
	AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach AttachIO) error
}

// PortForwarder is a provider for kubectl port-forward.
type PortForwarder interface {
	PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error
}

// StatsReader is a provider for kubectl top.
type StatsReader interface {
	GetStatsSummary(ctx context.Context) (*stats.Summary, error)
}

// ContainerLogOpts selects the part of a log to read. Its fields equal those of virtual-kubelet's type, so that the types
// can be converted.
type ContainerLogOpts struct {
	Tail         int
	LimitBytes   int
	Timestamps   bool
	Follow       bool
	Previous     bool
	SinceSeconds int
	SinceTime    time.Time
}

// AttachIO has the streams of a client. [Attach] converts it to virtual-kubelet's type.
type AttachIO interface {
	Stdin() io.Reader
	Stdout() io.WriteCloser
	Stderr() io.WriteCloser
	TTY() bool
	Resize() <-chan TermSize
}

// TermSize is the size of a terminal in characters.
type TermSize struct{ Width, Height uint16 }

// Attach converts streams to streams with another type of terminal sizes, such as virtual-kubelet's. The sizes are
// passed on until ctx ends.
func Attach[Size ~struct{ Width, Height uint16 }](ctx context.Context, io AttachIO) *Attached[Size] {
	return &Attached[Size]{AttachIO: io, sizes: convertSizes[Size](ctx, io.Resize())}
}

// convertSizes passes sizes on until there are no more or ctx ends; nil stays nil.
func convertSizes[To, From ~struct{ Width, Height uint16 }](ctx context.Context, from <-chan From) chan To {
	if from == nil {
		return nil
	}
	to := make(chan To)
	go func() {
		defer close(to)
		for {
			select {
			case <-ctx.Done():
				return
			case size, more := <-from:
				if !more {
					return
				}
				select {
				case to <- To(size):
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return to
}

// Attached has streams with terminal sizes of type Size.
type Attached[Size ~struct{ Width, Height uint16 }] struct {
	AttachIO
	sizes chan Size
}

// Resize returns the sizes of the terminal.
func (a *Attached[Size]) Resize() <-chan Size { return a.sizes }
