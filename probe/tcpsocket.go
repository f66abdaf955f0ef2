package probe

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// checkTCP succeeds if the port accepts a connection.
func checkTCP(ctx context.Context, q question, action *v1.TCPSocketAction) answer {
	address, err := q.address(action.Host, action.Port)
	if err != nil {
		return undone(err)
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return failed("%v", err)
	}
	_ = conn.Close() // it was open, which is all there was to find out
	return succeeded("")
}
