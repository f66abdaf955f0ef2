package observer

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/nodeclient"
)

// criCalls are the calls of repairs to the runtime. Each has a connection of its own: there are few.
type criCalls struct{ endpoint string }

// Stop ends a container, by force after the grace.
func (c criCalls) Stop(ctx context.Context, id string, grace time.Duration) error {
	return c.call(func(client runtimeapi.RuntimeServiceClient) error {
		_, err := client.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: int64(grace / time.Second)})
		return err
	})
}

// Remove removes a container that has been stopped.
func (c criCalls) Remove(ctx context.Context, id string) error {
	return c.call(func(client runtimeapi.RuntimeServiceClient) error {
		_, err := client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
		return err
	})
}

func (c criCalls) call(do func(runtimeapi.RuntimeServiceClient) error) error {
	connection, err := nodeclient.Runtime(c.endpoint)
	if err != nil {
		return err
	}
	defer connection.Close()
	return do(runtimeapi.NewRuntimeServiceClient(connection))
}
