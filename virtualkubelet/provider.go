package virtualkubelet

import (
	"context"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Provider runs pods. The method set is that of virtual-kubelet's PodLifecycleHandler. What else a provider can do is
// used if it has the methods: [PodNotifier], [NodeProvider], [NodeConfigurer], [LogReader], [Executor], [Attacher],
// [PortForwarder], [StatsReader].
//
// A pod that does not exist is an error with a method NotFound() bool that returns true, an API error of that kind, or
// nil for pod and error.
type Provider interface {
	// CreatePod starts a pod. Environments of its containers are resolved.
	CreatePod(ctx context.Context, pod *v1.Pod) error
	// UpdatePod is called when the spec, the labels or the annotations of a pod have changed.
	UpdatePod(ctx context.Context, pod *v1.Pod) error
	// DeletePod ends a pod and removes it. It may be called for a pod that is gone.
	DeletePod(ctx context.Context, pod *v1.Pod) error
	// GetPod returns a pod with its status.
	GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// GetPodStatus returns the status of a pod.
	GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error)
	// GetPods returns all pods that the provider has. Those that the API does not have are deleted.
	GetPods(ctx context.Context) ([]*v1.Pod, error)
}

// PodNotifier is a provider that reports changes by itself. NotifyPods is called once, before any other method, and
// must return. The callback may be called from any goroutine and does not block. Other providers are polled.
type PodNotifier interface {
	NotifyPods(ctx context.Context, notify func(*v1.Pod))
}

// NodeProvider is a provider that knows whether its node works. While Ping fails, the Node is not Ready.
// NotifyNodeStatus must return; the Node that is passed to its callback replaces labels, annotations, capacity,
// allocatable, addresses and node info where it has them, and adds conditions.
type NodeProvider interface {
	Ping(ctx context.Context) error
	NotifyNodeStatus(ctx context.Context, notify func(*v1.Node))
}

// NodeConfigurer is a provider that describes its Node: capacity, operating system, labels. It is called at the start.
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

// ContainerLogOpts says which part of a log is wanted. Its fields are those of virtual-kubelet's type, so that one can be
// converted into the other.
type ContainerLogOpts struct {
	Tail         int
	LimitBytes   int
	Timestamps   bool
	Follow       bool
	Previous     bool
	SinceSeconds int
	SinceTime    time.Time
}

// AttachIO are the streams of a client. [Attach] makes virtual-kubelet's type of it.
type AttachIO interface {
	Stdin() io.Reader
	Stdout() io.WriteCloser
	Stderr() io.WriteCloser
	TTY() bool
	Resize() <-chan TermSize
}

// TermSize is the size of a terminal in characters.
type TermSize struct{ Width, Height uint16 }

// Attach converts streams to those of a package whose terminal sizes are of another type, as virtual-kubelet's are. The
// sizes are passed on until ctx ends.
func Attach[Size ~struct{ Width, Height uint16 }](ctx context.Context, io AttachIO) *Attached[Size] {
	a := &Attached[Size]{AttachIO: io}
	if from := io.Resize(); from != nil {
		a.sizes = make(chan Size)
		go func() {
			defer close(a.sizes)
			for {
				select {
				case <-ctx.Done():
					return
				case size, ok := <-from:
					if !ok {
						return
					}
					select {
					case a.sizes <- Size(size):
					case <-ctx.Done():
						return
					}
				}
			}
		}()
	}
	return a
}

// Attached are streams with terminal sizes of a type of their own.
type Attached[Size ~struct{ Width, Height uint16 }] struct {
	AttachIO
	sizes chan Size
}

// Resize returns the sizes of the terminal.
func (a *Attached[Size]) Resize() <-chan Size { return a.sizes }
