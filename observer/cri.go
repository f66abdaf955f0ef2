package observer

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	criutil "k8s.io/cri-client/pkg/util"
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
	address, dialer, err := criutil.GetAddressAndDialer(c.endpoint)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithContextDialer(dialer))
	if err != nil {
		return err
	}
	defer connection.Close()
	return do(runtimeapi.NewRuntimeServiceClient(connection))
}
