package kubeletapi

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/statusd/statusd/runtime"
)

// Containers are functions that serve the requests about containers, for a program that has no [runtime.Runtime]. Each
// function is optional: requests for a nil function fail with [ErrNotSupported]. The functions may be called
// concurrently, and must return soon after their context has ended. The pod is one of [Options.Pods] and must not be
// changed.
type Containers struct {
	// Logs reads the log of a container, of its previous run if options.Previous is set.
	Logs func(ctx context.Context, pod *v1.Pod, container string, options v1.PodLogOptions) (io.ReadCloser, error)
	// Exec runs a command in a container, see [runtime.Streamer].
	Exec func(ctx context.Context, pod *v1.Pod, container string, command []string, streams runtime.Streams) (exitCode int, err error)
	// Attach connects to the streams of a container, see [runtime.Streamer].
	Attach func(ctx context.Context, pod *v1.Pod, container string, streams runtime.Streams) error
	// PortForward copies between a stream and a port of the pod, and closes the stream.
	PortForward func(ctx context.Context, pod *v1.Pod, port int32, stream io.ReadWriteCloser) error
	// Summary measures the node and its pods. Without Summary, [Options.Usage] measures the node, and pods are
	// not measured.
	Summary func(ctx context.Context) (*stats.Summary, error)
}

// ErrNotSupported is the error of a request for which [Containers] has no function.
var ErrNotSupported = errors.New("this node cannot do it")

// byName is a runtime whose containers are named by pod and container. It has only what the server asks for.
type byName struct {
	runtime.Runtime // nil: what the server does not ask for
	containers      *Containers
	pods            Pods
}

var _ runtime.Streamer = byName{}

// containerID names a container of a pod. A slash is in neither part.
func containerID(uid types.UID, container string) string { return string(uid) + "/" + container }

func (b byName) find(id string) (pod *v1.Pod, container string, err error) {
	for _, pod := range b.pods.All() {
		for _, list := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses} {
			for i := range list {
				if containerID(pod.UID, list[i].Name) == id {
					return pod, list[i].Name, nil
				}
			}
		}
	}
	return nil, "", runtime.ErrNotFound
}

// Pods implements [runtime.Runtime], from the statuses of the pods.
func (b byName) Pods(ctx context.Context) ([]runtime.Pod, error) {
	var all []runtime.Pod
	for _, pod := range b.pods.All() {
		all = append(all, asRun(pod))
	}
	return all, ctx.Err()
}

// Pod implements [runtime.Runtime].
func (b byName) Pod(_ context.Context, uid types.UID) (runtime.Pod, error) {
	for _, pod := range b.pods.All() {
		if pod.UID == uid {
			return asRun(pod), nil
		}
	}
	return runtime.Pod{}, runtime.ErrNotFound
}

func asRun(pod *v1.Pod) runtime.Pod {
	found := runtime.Pod{Manifest: pod}
	for _, list := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil {
				found.Containers = append(found.Containers, runtime.Container{
					ID: containerID(pod.UID, list[i].Name), Name: list[i].Name, Image: list[i].Image, State: runtime.Running,
				})
			}
		}
	}
	return found
}

// Exec implements [runtime.Runtime].
func (b byName) Exec(context.Context, string, []string) (runtime.ExecResult, error) {
	return runtime.ExecResult{}, fmt.Errorf("run a command: %w", ErrNotSupported)
}

// ExecStream implements [runtime.Streamer].
func (b byName) ExecStream(ctx context.Context, id string, command []string, streams runtime.Streams) (int, error) {
	pod, container, err := b.find(id)
	if err != nil {
		return 0, err
	}
	if b.containers.Exec == nil {
		return 0, fmt.Errorf("run a command: %w", ErrNotSupported)
	}
	return b.containers.Exec(ctx, pod, container, command, streams)
}

// Attach implements [runtime.Streamer].
func (b byName) Attach(ctx context.Context, id string, streams runtime.Streams) error {
	pod, container, err := b.find(id)
	if err != nil {
		return err
	}
	if b.containers.Attach == nil {
		return fmt.Errorf("attach: %w", ErrNotSupported)
	}
	return b.containers.Attach(ctx, pod, container, streams)
}

// PortForward implements [runtime.Streamer].
func (b byName) PortForward(ctx context.Context, uid types.UID, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	found, err := b.Pod(ctx, uid)
	if err != nil {
		return err
	}
	if b.containers.PortForward == nil {
		return fmt.Errorf("forward a port: %w", ErrNotSupported)
	}
	return b.containers.PortForward(ctx, found.Manifest, port, stream)
}
