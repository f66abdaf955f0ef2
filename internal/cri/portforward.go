package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport/spdy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// portForwardProtocol is what the streaming server of a container runtime speaks.
const portForwardProtocol = "portforward.k8s.io"

// PortForward implements [runtime.Streamer], through the streaming server of the container runtime, which connects from inside of the pod's network.
func (r *Runtime) PortForward(ctx context.Context, uid types.UID, port int32, client io.ReadWriteCloser) error {
	defer client.Close()
	p, err := r.place(uid)
	if err != nil {
		return err
	}
	r.mu.Lock()
	id := p.sandbox.id
	r.mu.Unlock()
	bounded, cancel := r.ask(ctx)
	defer cancel()
	response, err := r.cri.PortForward(bounded, &runtimeapi.PortForwardRequest{PodSandboxId: id, Port: []int32{port}})
	if err != nil {
		return fmt.Errorf("cri: port-forward to pod %s: %w", uid, err)
	}
	connection, err := dial(response.Url)
	if err != nil {
		return fmt.Errorf("cri: port-forward to pod %s: %w", uid, err)
	}
	defer connection.Close()
	if err := forward(ctx, connection, port, client); err != nil {
		return fmt.Errorf("cri: port-forward to port %d of pod %s: %w", port, uid, err)
	}
	return nil
}

// streams is a connection to a streaming server.
type streams struct {
	io.Closer
	open func(http.Header) (io.ReadWriteCloser, error)
}

func dial(address string) (*streams, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		return nil, err
	}
	connection, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at).Dial(portForwardProtocol)
	if err != nil {
		return nil, err
	}
	return &streams{connection, func(headers http.Header) (io.ReadWriteCloser, error) { return connection.CreateStream(headers) }}, nil
}

// forward copies both ways until both have ended. The end of one is passed on.
func forward(ctx context.Context, connection *streams, port int32, client io.ReadWriteCloser) error {
	stop := context.AfterFunc(ctx, func() {
		connection.Close()
		client.Close()
	})
	defer stop()
	headers := http.Header{}
	headers.Set(v1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(v1.PortForwardRequestIDHeader, "0")
	headers.Set(v1.StreamType, v1.StreamTypeError)
	failures, err := connection.open(headers)
	if err != nil {
		return err
	}
	failures.Close() // nothing is sent
	headers.Set(v1.StreamType, v1.StreamTypeData)
	data, err := connection.open(headers)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		text, err := io.ReadAll(failures)
		if err == nil && len(text) > 0 {
			err = errors.New(strings.TrimSpace(string(text)))
			connection.Close()
		}
		failed <- err
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(data, client) // the other direction learns of what fails
		data.Close()
	}()
	_, copyErr := io.Copy(client, data)
	if half, ok := client.(interface{ CloseWrite() error }); copyErr == nil && ok {
		copyErr = half.CloseWrite()
	} else {
		client.Close()
	}
	<-sent
	connection.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := <-failed; err != nil {
		return err
	}
	return copyErr
}
