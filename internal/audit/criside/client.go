package criside

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"

	"github.com/statusd/statusd/internal/nodeclient"
)

// counter counts the calls to the runtime, by method.
type counter struct {
	mu    sync.Mutex // guards calls
	calls map[string]uint64
}

func (c *counter) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[method]++
}

func (c *counter) all() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// client is a connection to the runtime.
type client struct {
	service internalapi.RuntimeService
	counter *counter
}

// connect makes a client. The runtime must answer.
func connect(ctx context.Context, endpoint string, timeout time.Duration, counter *counter) (*client, error) {
	if err := probe(ctx, endpoint, timeout, counter); err != nil {
		return nil, err
	}
	counter.add("Version")
	service, err := cri.NewRemoteRuntimeService(ctx, endpoint, timeout, nil, false)
	if err != nil {
		return nil, err
	}
	return &client{service: service, counter: counter}, nil
}

// probe requests the version over a connection of its own. The constructor of cri-client does the same but
// leaks its connection if the runtime does not answer: one more with each attempt.
func probe(ctx context.Context, endpoint string, timeout time.Duration, counter *counter) error {
	conn, err := nodeclient.Runtime(endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	counter.add("Version")
	if _, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{}); err != nil {
		return fmt.Errorf("call Version: %w", err)
	}
	return nil
}

func (c *client) close() { _ = c.service.Close(context.Background()) }

func (c *client) containers(ctx context.Context) ([]*runtimeapi.Container, error) {
	c.counter.add("ListContainers")
	containers, err := c.service.ListContainers(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("ListContainers: %w", err)
	}
	return containers, nil
}

func (c *client) sandboxes(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
	c.counter.add("ListPodSandbox")
	sandboxes, err := c.service.ListPodSandbox(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("ListPodSandbox: %w", err)
	}
	return sandboxes, nil
}

func (c *client) container(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	c.counter.add("ContainerStatus")
	response, err := c.service.ContainerStatus(ctx, id, false)
	if err == nil && response.GetStatus() == nil {
		err = cri.ErrContainerStatusNil
	}
	if err != nil {
		return nil, fmt.Errorf("ContainerStatus %s: %w", id, err)
	}
	return response.GetStatus(), nil
}

func (c *client) sandbox(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	c.counter.add("PodSandboxStatus")
	response, err := c.service.PodSandboxStatus(ctx, id, false)
	if err != nil {
		return nil, fmt.Errorf("PodSandboxStatus %s: %w", id, err)
	}
	return response.GetStatus(), nil
}

// silence reports whether an error means that the runtime does not answer, as opposed to a refused request.
func silence(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

func timedOut(err error) bool { return status.Code(err) == codes.DeadlineExceeded }

func gone(err error) bool { return status.Code(err) == codes.NotFound }
