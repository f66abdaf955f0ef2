package probe

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/httpget"
)

// checkTCP succeeds if the port accepts a connection.
func checkTCP(ctx context.Context, q question, action *v1.TCPSocketAction) answer {
	address, err := httpget.Address(action.Host, action.Port, q.container, q.podIP)
	if err != nil {
		return undone(err)
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return failed("%v", err)
	}
	_ = conn.Close() // a failure to close says nothing about the container
	return succeeded("")
}
