package nodeclient

import (
	"fmt"

	"google.golang.org/grpc"
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
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithContextDialer(dialer), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("runtime %s: %w", endpoint, err)
	}
	return conn, nil
}
