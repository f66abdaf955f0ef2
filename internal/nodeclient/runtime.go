package nodeclient

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	criutil "k8s.io/cri-client/pkg/util"
)

// maxMessage is how long an answer may be: a list of all containers of a full node is longer than gRPC allows by default.
const maxMessage = 16 << 20

// Runtime makes a connection to a CRI socket, as in unix:///run/containerd/containerd.sock. It is opened with the first request.
func Runtime(endpoint string) (*grpc.ClientConn, error) {
	address, dialer, err := criutil.GetAddressAndDialer(endpoint)
	if err != nil {
		return nil, fmt.Errorf("runtime %s: %w", endpoint, err)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, options(dialer)...)
	if err != nil {
		return nil, fmt.Errorf("runtime %s: %w", endpoint, err)
	}
	return conn, nil
}

// connectTimeout is how long a runtime may take to take a connection.
const connectTimeout = 20 * time.Second

func options(dialer func(context.Context, string) (net.Conn, error)) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"), grpc.WithContextDialer(dialer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		// The default waits for up to two minutes after a long outage, and a socket of this machine costs nothing to try.
		// A runtime on a busy machine takes seconds to take a connection: without a least time each try would end with its back-off.
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTimeout, Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}),
	}
}
