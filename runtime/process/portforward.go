package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// PortForward implements [runtime.Streamer]. A pod has the network of the machine, so that its
// ports are ports of the machine's loopback.
func (r *Runtime) PortForward(ctx context.Context, uid types.UID, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	r.mu.Lock()
	_, known := r.pods[uid]
	r.mu.Unlock()
	if !known {
		return fmt.Errorf("process: port-forward to pod %s: %w", uid, runtime.ErrNotFound)
	}
	connection, err := dialLoopback(ctx, port)
	if err != nil {
		return fmt.Errorf("process: port-forward to pod %s: %w", uid, err)
	}
	defer connection.Close()
	if err := forward(ctx, connection, stream); err != nil {
		return fmt.Errorf("process: port-forward to port %d of pod %s: %w", port, uid, err)
	}
	return nil
}

// dialLoopback takes the first of the addresses of the machine itself that answers.
func dialLoopback(ctx context.Context, port int32) (*net.TCPConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%d is not a port", port)
	}
	var errs []error
	for _, address := range []string{"127.0.0.1", "::1"} {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(port))))
		if err == nil {
			return connection.(*net.TCPConn), nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// forward copies both ways until both have ended. The end of one is passed on.
func forward(ctx context.Context, connection *net.TCPConn, stream io.ReadWriteCloser) error {
	stop := context.AfterFunc(ctx, func() {
		connection.Close()
		stream.Close()
	})
	defer stop()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(connection, stream)
		if err == nil {
			err = connection.CloseWrite()
		} else {
			connection.Close() // the client has gone
		}
		sent <- err
	}()
	_, err := io.Copy(stream, connection)
	if half, ok := stream.(interface{ CloseWrite() error }); err == nil && ok {
		err = half.CloseWrite()
	} else {
		stream.Close() // so that the client sees the end, and the other direction ends
	}
	sendErr := <-sent
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(sendErr, net.ErrClosed):
		return err
	}
	return errors.Join(err, sendErr)
}
