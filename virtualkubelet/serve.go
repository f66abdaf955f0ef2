package virtualkubelet

import (
	"context"
	"errors"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/runtime"
)

// server makes the kubelet's API of what the provider can do; nil: there is no listener.
func (k *kubelet) server() (*kubeletapi.Server, error) {
	o := &k.options
	if o.Listener == nil {
		return nil, nil
	}
	options := kubeletapi.Options{NodeName: o.NodeName, Listener: o.Listener, Client: o.Client, Pods: podsOf{k}, Containers: containersOf(o.Provider), Logger: o.Logger}
	var err error
	if options.Certificate, err = kubeletapi.SelfSigned(o.CertificateDir, o.NodeName, k.hostIPs(), o.Logger); err != nil {
		return nil, err
	}
	if o.ClientCAFile != "" {
		if options.ClientCA, err = kubeletapi.NewRoots(o.ClientCAFile, o.Logger); err != nil {
			return nil, err
		}
	}
	return kubeletapi.New(options)
}

// podsOf are the API's pods with the statuses that the node reports.
type podsOf struct{ *kubelet }

func (p podsOf) All() []*v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*v1.Pod
	for _, pod := range p.pods {
		if pod.api != nil {
			all = append(all, p.withStatus(pod.api))
		}
	}
	return all
}

func (p podsOf) ByName(namespace, name string) (*v1.Pod, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.pods[types.NamespacedName{Namespace: namespace, Name: name}]
	if pod == nil || pod.api == nil {
		return nil, false
	}
	return p.withStatus(pod.api), true
}

func (p podsOf) TranslateUID(uid types.UID) types.UID { return uid }

func (p podsOf) withStatus(api *v1.Pod) *v1.Pod {
	pod := *api
	pod.Status = p.status(api)
	return &pod
}

// containersOf is what the provider can do. A panic ends the request alone.
func containersOf(provider Provider) *kubeletapi.Containers {
	c := &kubeletapi.Containers{}
	if reader, ok := provider.(LogReader); ok {
		c.Logs = func(ctx context.Context, pod *v1.Pod, container string, o v1.PodLogOptions) (log io.ReadCloser, err error) {
			err = unpanicked("GetContainerLogs", ctx, func(ctx context.Context) (err error) {
				log, err = reader.GetContainerLogs(ctx, pod.Namespace, pod.Name, container, logOpts(o))
				return err
			})
			return log, err
		}
	}
	if executor, ok := provider.(Executor); ok {
		c.Exec = func(ctx context.Context, pod *v1.Pod, container string, command []string, s runtime.Streams) (int, error) {
			err := unpanicked("RunInContainer", ctx, func(ctx context.Context) error {
				return executor.RunInContainer(ctx, pod.Namespace, pod.Name, container, command, attachIO(ctx, s))
			})
			var exit interface{ ExitStatus() int }
			if errors.As(err, &exit) {
				return exit.ExitStatus(), nil
			}
			return 0, err
		}
	}
	if attacher, ok := provider.(Attacher); ok {
		c.Attach = func(ctx context.Context, pod *v1.Pod, container string, s runtime.Streams) error {
			return unpanicked("AttachToContainer", ctx, func(ctx context.Context) error {
				return attacher.AttachToContainer(ctx, pod.Namespace, pod.Name, container, attachIO(ctx, s))
			})
		}
	}
	if forwarder, ok := provider.(PortForwarder); ok {
		c.PortForward = func(ctx context.Context, pod *v1.Pod, port int32, stream io.ReadWriteCloser) error {
			return unpanicked("PortForward", ctx, func(ctx context.Context) error {
				return forwarder.PortForward(ctx, pod.Namespace, pod.Name, port, stream)
			})
		}
	}
	if reader, ok := provider.(StatsReader); ok {
		c.Summary = func(ctx context.Context) (summary *stats.Summary, err error) {
			err = unpanicked("GetStatsSummary", ctx, func(ctx context.Context) (err error) {
				summary, err = reader.GetStatsSummary(ctx)
				return err
			})
			return summary, err
		}
	}
	return c
}

func logOpts(o v1.PodLogOptions) ContainerLogOpts {
	opts := ContainerLogOpts{Timestamps: o.Timestamps, Follow: o.Follow, Previous: o.Previous}
	if o.TailLines != nil {
		opts.Tail = int(*o.TailLines)
	}
	if o.LimitBytes != nil {
		opts.LimitBytes = int(*o.LimitBytes)
	}
	if o.SinceSeconds != nil {
		opts.SinceSeconds = int(*o.SinceSeconds)
	}
	if o.SinceTime != nil {
		opts.SinceTime = o.SinceTime.UTC().Truncate(time.Second)
	}
	return opts
}

// streams are the streams of a client.
type streams struct {
	runtime.Streams
	sizes chan TermSize
}

func attachIO(ctx context.Context, s runtime.Streams) AttachIO {
	return &streams{Streams: s, sizes: convertSizes[TermSize](ctx, s.Resize)}
}

func (s *streams) Stdin() io.Reader        { return s.Streams.Stdin }
func (s *streams) Stdout() io.WriteCloser  { return closing(s.Streams.Stdout) }
func (s *streams) Stderr() io.WriteCloser  { return closing(s.Streams.Stderr) }
func (s *streams) TTY() bool               { return s.Streams.TTY }
func (s *streams) Resize() <-chan TermSize { return s.sizes }

// closing is a writer that a provider may close; nil stays nil.
func closing(w io.Writer) io.WriteCloser {
	if w == nil {
		return nil
	}
	if c, ok := w.(io.WriteCloser); ok {
		return c
	}
	return unclosed{w}
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
