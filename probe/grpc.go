package probe

import (
	"context"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
)

// checkGRPC asks the container's grpc.health.v1 service, without encryption, which the API
// has no way to ask for. A port that refuses is tried again until the timeout.
func (c *checker) checkGRPC(ctx context.Context, q question, action *v1.GRPCAction) answer {
	address := net.JoinHostPort(q.podIP, strconv.Itoa(int(action.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithUserAgent(c.userAgent),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}),
	)
	if err != nil {
		return undone(err)
	}
	defer conn.Close()
	request := &health.HealthCheckRequest{}
	if action.Service != nil {
		request.Service = *action.Service
	}
	var server peer.Peer // without address if there was no connection to send the request on
	response, err := health.NewHealthClient(conn).Check(ctx, request, grpc.WaitForReady(true), grpc.Peer(&server))
	if err != nil {
		return grpcFailure(q, address, server.Addr != nil, err)
	}
	if got := response.GetStatus(); got != health.HealthCheckResponse_SERVING {
		return failed("service unhealthy (responded with %q)", got)
	}
	return succeeded("service healthy")
}

// grpcFailure has the kubelet's messages for a request without an answer.
func grpcFailure(q question, address string, connected bool, err error) answer {
	switch code := status.Code(err); {
	case code == codes.DeadlineExceeded && !connected:
		return failed("timeout: failed to connect service %q within %v: %v", address, q.timeout, context.DeadlineExceeded)
	case code == codes.DeadlineExceeded:
		return failed("timeout: health rpc did not complete within %v", q.timeout)
	case code == codes.Unimplemented:
		return failed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	}
	return failed("error: health rpc probe failed: %v", err)
}
