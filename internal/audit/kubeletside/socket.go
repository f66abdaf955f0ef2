package kubeletside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusd/statusd/internal/unixsocket"
)

// errNoSocket: the kubelet does not serve the Pods API.
var errNoSocket = errors.New("there is no socket of the Pods API: enable the kubelet's feature gate PodsAPI, or configure its HTTPS endpoint")

// socketClient asks the Pods API.
type socketClient struct {
	options Options
	decoder *decoder
	// answered wakes the watch when a list has succeeded; one signal is enough.
	answered chan struct{}
}

func newSocketClient(o Options) *socketClient {
	return &socketClient{
		options:  o,
		decoder:  newDecoder(func(data []byte, pod *v1.Pod) error { return pod.Unmarshal(data) }),
		answered: make(chan struct{}, 1),
	}
}

// notServed reports whether an error means that there is no Pods API, so that the other way may serve.
func notServed(err error) bool {
	return errors.Is(err, errNoSocket) || status.Code(err) == codes.Unimplemented || status.Code(err) == codes.Unavailable
}

// connect makes a connection, which the caller closes.
func (c *socketClient) connect() (*grpc.ClientConn, error) {
	if _, err := os.Stat(c.options.Socket); errors.Is(err, fs.ErrNotExist) {
		return nil, errNoSocket
	}
	return grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return unixsocket.Dial(ctx, c.options.Socket) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.options.MaxBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Second, Multiplier: 1, MaxDelay: time.Second}, MinConnectTimeout: c.options.Timeout}),
		grpc.WithIdleTimeout(0))
}

// list asks for all pods, over a connection of its own: it proves that the kubelet accepts
// connections, which an old one does not.
func (c *socketClient) list(ctx context.Context) (list, error) {
	conn, err := c.connect()
	if err != nil {
		return list{}, fmt.Errorf("%s: %w", c.options.Socket, err)
	}
	defer conn.Close()
	response, err := podsv1alpha1.NewPodsClient(conn).ListPods(ctx, &podsv1alpha1.ListPodsRequest{})
	if err != nil {
		return list{}, fmt.Errorf("ListPods at %s: %w", c.options.Socket, c.explain(err))
	}
	pods, err := c.decoder.all(response.Pods)
	if err != nil {
		return list{}, fmt.Errorf("ListPods at %s: a pod of the answer cannot be read: %w", c.options.Socket, err)
	}
	return list{from: c.options.Socket, pods: pods, own: true}, nil
}

// explain adds to the error of a call what a person needs to know.
func (c *socketClient) explain(err error) error {
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return fmt.Errorf("no answer within %v: the kubelet hangs, is stopped or overloaded", c.options.Timeout)
	case codes.ResourceExhausted:
		return fmt.Errorf("the answer is too large, or the kubelet is overloaded: %w", err)
	case codes.FailedPrecondition:
		return fmt.Errorf("the kubelet does not know its pods yet: %w", err)
	}
	return err
}

// watch follows the changes between the lists until ctx ends. The end of a watch triggers a list, so that a stopped kubelet is
// noticed at once; the next successful list starts the watch again. A watch that keeps ending quickly triggers no list.
func (s *Side) watch(ctx context.Context) {
	short := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.socket.answered:
		}
		began := time.Now()
		followed, err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		s.log.Info("the watch of the kubelet's pods has ended", "err", err)
		// A connection that was lost; not a watch that the kubelet has refused, or ended because it was slow.
		if code := status.Code(err); followed && (code == codes.Unavailable || errors.Is(err, io.EOF)) {
			s.gap()
		}
		if time.Since(began) >= s.options.Pace {
			short = 0
		}
		if short == 0 {
			s.Refresh()
		}
		short++
	}
}

// gap notes that the kubelet may have been restarted.
func (s *Side) gap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Gap(time.Now())
}

// follow reads one watch until it ends. follow reports whether the kubelet has served it.
func (s *Side) follow(ctx context.Context) (followed bool, err error) {
	conn, err := s.socket.connect()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := podsv1alpha1.NewPodsClient(conn).WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		return false, err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return followed, err
		}
		followed = true
		if err := s.event(event); err != nil {
			return followed, err
		}
	}
}

// event takes over one event of the watch.
func (s *Side) event(event *podsv1alpha1.WatchPodsEvent) error {
	switch event.Type {
	case podsv1alpha1.EventType_ADDED, podsv1alpha1.EventType_MODIFIED, podsv1alpha1.EventType_DELETED:
	default: // the initial pods are those of the list, too
		return nil
	}
	pod, err := s.socket.decoder.one(event.Pod)
	if err != nil {
		return fmt.Errorf("a pod of the watch cannot be read: %w", err)
	}
	if err := check([]*v1.Pod{pod}, s.options.Node); err != nil {
		return err
	}
	if event.Type == podsv1alpha1.EventType_DELETED {
		s.put(pod.UID, nil)
	} else {
		s.put(pod.UID, pod)
	}
	return nil
}
