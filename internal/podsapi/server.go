package podsapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// Source provides the pods of a node. Its methods are called from any goroutine and return quickly.
// Returned pods are not changed afterwards, by either side.
type Source interface {
	// Synced reports whether the node has its pods.
	Synced() bool
	// Pods returns the pods with their statuses.
	Pods() []*v1.Pod
	// Pod returns one pod, false if the node does not have it.
	Pod(uid types.UID) (*v1.Pod, bool)
	// Watch calls changed for each pod that has changed, until ctx ends. It does not wait for changed,
	// which returns at once.
	Watch(ctx context.Context, changed func(types.UID)) error
}

// Options configure a server.
type Options struct {
	// Source is required.
	Source Source
	// MaxWatchers is how many watches there may be at a time; 32 if 0.
	MaxWatchers int
}

// Limits on what a client may take.
const (
	maxStreams = 64      // of one connection
	maxRequest = 4 << 10 // bytes; a request is a UID at most
	idleAfter  = 5 * time.Minute
	defaultMax = 32
)

// Server is the service. Make it with [New].
type Server struct {
	podsv1alpha1.UnimplementedPodsServer
	options Options

	mu       sync.Mutex // guards watchers
	watchers map[*watcher]bool
}

// New makes a server. New starts nothing: see [Server.Run].
func New(options Options) (*Server, error) {
	if options.Source == nil {
		return nil, errors.New("podsapi: options: Source is nil")
	}
	if options.MaxWatchers == 0 {
		options.MaxWatchers = defaultMax
	}
	return &Server{options: options, watchers: map[*watcher]bool{}}, nil
}

// Run serves on a listener, and follows the source, until ctx ends. Run closes the listener.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := grpc.NewServer(grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(maxRequest),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleAfter}))
	podsv1alpha1.RegisterPodsServer(server, s)
	var following sync.WaitGroup
	var followed error
	following.Go(func() {
		defer cancel()
		followed = s.options.Source.Watch(ctx, s.announce)
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("podsapi: serve: %w", err)
		cancel()
	case <-ctx.Done():
		server.Stop()
		<-served
	}
	following.Wait()
	if ctx.Err() == nil || errors.Is(followed, ctx.Err()) {
		followed = nil
	}
	return errors.Join(err, followed)
}

// announce notes for each watcher that a pod has changed.
func (s *Server) announce(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.changed.Add(uid)
	}
}

// ListPods returns all pods, by UID.
func (s *Server) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	if err := s.synced(); err != nil {
		return nil, err
	}
	response := &podsv1alpha1.ListPodsResponse{}
	pods := slices.SortedFunc(slices.Values(s.options.Source.Pods()), func(a, b *v1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	for _, pod := range pods {
		data, err := marshal(pod)
		if err != nil {
			return nil, err
		}
		response.Pods = append(response.Pods, data)
	}
	return response, nil
}

// GetPod returns the pod of a UID.
func (s *Server) GetPod(_ context.Context, request *podsv1alpha1.GetPodRequest) (*podsv1alpha1.GetPodResponse, error) {
	if err := s.synced(); err != nil {
		return nil, err
	}
	pod, ok := s.options.Source.Pod(types.UID(request.GetPodUID()))
	if !ok {
		return nil, status.Errorf(codes.NotFound, "pod with UID %q not found", request.GetPodUID())
	}
	data, err := marshal(pod)
	if err != nil {
		return nil, err
	}
	return &podsv1alpha1.GetPodResponse{Pod: data}, nil
}

func (s *Server) synced() error {
	if !s.options.Source.Synced() {
		return status.Error(codes.FailedPrecondition, "the pods of this node are not known yet")
	}
	return nil
}

func marshal(pod *v1.Pod) ([]byte, error) {
	data, err := pod.Marshal()
	if err != nil {
		return nil, status.Errorf(codes.Internal, "encode pod %s/%s: %v", pod.Namespace, pod.Name, err)
	}
	return data, nil
}
