package criside

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/unixsocket"
)

// fake is a container runtime that runs nothing: a container whose command is "exit N" ends at once, each other
// one when it is stopped. It has faults.
type fake struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	t      *testing.T
	socket string

	mu         sync.Mutex // guards what follows
	server     *grpc.Server
	served     chan struct{}
	thawed     chan struct{} // closed while calls are answered
	next       int
	clock      int64
	sandboxes  map[string]*runtimeapi.PodSandboxStatus
	containers map[string]*fakeContainer

	// statusErr is the answer to ContainerStatus, and listed what else a list has.
	statusErr error
	listed    []*runtimeapi.Container
}

type fakeContainer struct {
	sandbox, command string
	status           *runtimeapi.ContainerStatus
}

func newFake(t *testing.T) *fake {
	f := &fake{
		t: t, socket: filepath.Join(t.TempDir(), "s"), thawed: make(chan struct{}), clock: 1e18,
		sandboxes: map[string]*runtimeapi.PodSandboxStatus{}, containers: map[string]*fakeContainer{},
	}
	close(f.thawed)
	f.Start()
	t.Cleanup(func() {
		f.Thaw()
		f.Kill()
	})
	return f
}

func (f *fake) Endpoint() string { return "unix://" + f.socket }

func (f *fake) Start() {
	listener, err := unixsocket.Listen(f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	server, served := grpc.NewServer(grpc.UnaryInterceptor(f.intercept)), make(chan struct{})
	runtimeapi.RegisterRuntimeServiceServer(server, f)
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	f.set(func() { f.server, f.served = server, served })
}

func (f *fake) Kill() {
	f.server.Stop()
	<-f.served
}

func (f *fake) Freeze() { f.set(func() { f.thawed = make(chan struct{}) }) }

func (f *fake) Thaw() {
	f.set(func() {
		select {
		case <-f.thawed:
		default:
			close(f.thawed)
		}
	})
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// intercept answers no call while the runtime is frozen.
func (f *fake) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	thawed := f.thawed
	f.mu.Unlock()
	select {
	case <-thawed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return handler(ctx, request)
}

func (f *fake) id(prefix string) string {
	f.next++
	return fmt.Sprintf("%s%d", prefix, f.next)
}

func (f *fake) now() int64 {
	f.clock += 1e9
	return f.clock
}

func (f *fake) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1.0", RuntimeApiVersion: "v1"}, nil
}

func (f *fake) RunPodSandbox(_ context.Context, r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	id := f.id("sandbox")
	f.sandboxes[id] = &runtimeapi.PodSandboxStatus{
		Id: id, Metadata: r.Config.Metadata, State: runtimeapi.PodSandboxState_SANDBOX_READY, CreatedAt: f.now(), Labels: r.Config.Labels,
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::1"}}},
	}
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (f *fake) StopPodSandbox(_ context.Context, r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	if s := f.sandboxes[r.PodSandboxId]; s != nil {
		s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (f *fake) RemovePodSandbox(_ context.Context, r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	maps.DeleteFunc(f.containers, func(_ string, c *fakeContainer) bool { return c.sandbox == r.PodSandboxId })
	delete(f.sandboxes, r.PodSandboxId)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

func (f *fake) PodSandboxStatus(_ context.Context, r *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, ok := f.sandboxes[r.PodSandboxId]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such sandbox")
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: s}, nil
}

func (f *fake) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	response := &runtimeapi.ListPodSandboxResponse{}
	for _, id := range slices.Sorted(maps.Keys(f.sandboxes)) {
		s := f.sandboxes[id]
		response.Items = append(response.Items, &runtimeapi.PodSandbox{Id: id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels})
	}
	return response, nil
}

func (f *fake) CreateContainer(_ context.Context, r *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	id := f.id("container")
	f.containers[id] = &fakeContainer{
		sandbox: r.PodSandboxId, command: strings.Join(append(r.Config.Command, r.Config.Args...), " "),
		status: &runtimeapi.ContainerStatus{
			Id: id, Metadata: r.Config.Metadata, State: runtimeapi.ContainerState_CONTAINER_CREATED, CreatedAt: f.now(),
			Image: r.Config.Image, ImageRef: "sha256:1", Labels: r.Config.Labels, Annotations: r.Config.Annotations,
		},
	}
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

func (f *fake) StartContainer(_ context.Context, r *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	c := f.containers[r.ContainerId]
	c.status.State, c.status.StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, f.now()
	var code int32
	if i := strings.LastIndex(c.command, "exit "); i >= 0 {
		if _, err := fmt.Sscanf(c.command[i:], "exit %d", &code); err == nil {
			f.exit(r.ContainerId, code)
		}
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

func (f *fake) exit(id string, code int32) {
	c := f.containers[id]
	c.status.State, c.status.ExitCode, c.status.FinishedAt, c.status.Reason = runtimeapi.ContainerState_CONTAINER_EXITED, code, f.now(), "Error"
}

func (f *fake) StopContainer(_ context.Context, r *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	if c := f.containers[r.ContainerId]; c != nil && c.status.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
		f.exit(r.ContainerId, 137)
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

func (f *fake) RemoveContainer(_ context.Context, r *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	delete(f.containers, r.ContainerId)
	return &runtimeapi.RemoveContainerResponse{}, nil
}

func (f *fake) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	response := &runtimeapi.ListContainersResponse{Containers: f.listed}
	for _, id := range slices.Sorted(maps.Keys(f.containers)) {
		c := f.containers[id]
		response.Containers = append(response.Containers, &runtimeapi.Container{
			Id: id, PodSandboxId: c.sandbox, Metadata: c.status.Metadata, Image: c.status.Image, State: c.status.State, CreatedAt: c.status.CreatedAt,
			Labels: c.status.Labels, Annotations: c.status.Annotations,
		})
	}
	return response, nil
}

func (f *fake) ContainerStatus(_ context.Context, r *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	if f.statusErr != nil {
		return nil, f.statusErr
	}
	c, ok := f.containers[r.ContainerId]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	return &runtimeapi.ContainerStatusResponse{Status: c.status}, nil
}
