package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

// fake is a container runtime in memory, behind a real socket. It keeps what it is given, as containerd does, and each call can be made to fail.
type fake struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	socket string

	mu         sync.Mutex // guards what follows
	next       int
	sandboxes  map[string]*runtimeapi.PodSandbox
	containers map[string]*runtimeapi.ContainerStatus
	in         map[string]string // the sandbox of a container
	configs    map[string]*runtimeapi.ContainerConfig
	places     map[string]*runtimeapi.PodSandboxConfig // as they were said when containers were made
	updates    []*runtimeapi.LinuxContainerResources
	features   *runtimeapi.RuntimeFeatures
	images     map[string]*runtimeapi.Image
	pullErr    error
	pulling    func(context.Context) error // of a pull, if set
	password   string                      // of the registry, if set
	startErr   error
	sandboxErr error
	starting   func(*runtimeapi.ContainerStatus) error // of a start, if set
	down       error                                   // of each call
	refusals   int                                     // calls that are refused before the first answer
	network    *runtimeapi.RuntimeCondition
	ip         string // of each sandbox
	handlers   []*runtimeapi.RuntimeHandler
	frozen     chan struct{} // if set, commands are answered when it is closed
	written    uint64        // by each container, in bytes
	statsErr   error
	calls      []string
	// sandboxConfigs are those of all sandboxes that were made.
	sandboxConfigs []*runtimeapi.PodSandboxConfig
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		socket: filepath.Join(t.TempDir(), "cri.sock"), sandboxes: map[string]*runtimeapi.PodSandbox{}, containers: map[string]*runtimeapi.ContainerStatus{},
		in: map[string]string{}, configs: map[string]*runtimeapi.ContainerConfig{}, places: map[string]*runtimeapi.PodSandboxConfig{}, images: map[string]*runtimeapi.Image{"web:1": {Id: "sha256:web"}},
		network: &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: true}, ip: "10.1.2.3",
	}
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(f.intercept))
	runtimeapi.RegisterRuntimeServiceServer(server, f)
	runtimeapi.RegisterImageServiceServer(server, f)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // until it is stopped
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return f
}

func (f *fake) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, filepath.Base(info.FullMethod))
	if f.down != nil {
		return nil, f.down
	}
	if f.refusals > 0 {
		f.refusals--
		return nil, errors.New("server is not initialized yet")
	}
	return handler(ctx, request)
}

// change changes the fake between two calls.
func (f *fake) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

func (f *fake) id(kind string) string {
	f.next++
	return fmt.Sprintf("%s-%d", kind, f.next)
}

func (f *fake) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: "1.6.20", RuntimeApiVersion: "v1"}, nil
}

func (f *fake) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{{Type: runtimeapi.RuntimeReady, Status: true}, f.network}}, RuntimeHandlers: f.handlers, Features: f.features}, nil
}

func (f *fake) RunPodSandbox(_ context.Context, r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	if f.sandboxErr != nil {
		return nil, f.sandboxErr
	}
	id := f.id("sandbox")
	f.sandboxConfigs = append(f.sandboxConfigs, r.Config)
	f.sandboxes[id] = &runtimeapi.PodSandbox{Id: id, Metadata: r.Config.Metadata, Labels: r.Config.Labels, State: runtimeapi.PodSandboxState_SANDBOX_READY}
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (f *fake) PodSandboxStatus(_ context.Context, r *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	if f.sandboxes[r.PodSandboxId] == nil {
		return nil, status.Error(codes.NotFound, "no such sandbox")
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{Network: &runtimeapi.PodSandboxNetworkStatus{Ip: f.ip}}}, nil
}

func (f *fake) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	response := &runtimeapi.ListPodSandboxResponse{}
	for _, s := range f.sandboxes {
		response.Items = append(response.Items, s)
	}
	return response, nil
}

func (f *fake) StopPodSandbox(_ context.Context, r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	if s := f.sandboxes[r.PodSandboxId]; s != nil {
		s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (f *fake) RemovePodSandbox(_ context.Context, r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	delete(f.sandboxes, r.PodSandboxId)
	for id, sandbox := range f.in {
		if sandbox == r.PodSandboxId {
			delete(f.containers, id)
		}
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

func (f *fake) CreateContainer(_ context.Context, r *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	id := f.id("container")
	f.containers[id] = &runtimeapi.ContainerStatus{
		Id: id, Metadata: r.Config.Metadata, State: runtimeapi.ContainerState_CONTAINER_CREATED, CreatedAt: time.Now().UnixNano(), Image: r.Config.Image,
		ImageRef: r.Config.Image.Image, Labels: r.Config.Labels, Annotations: r.Config.Annotations, LogPath: filepath.Join(r.SandboxConfig.LogDirectory, r.Config.LogPath),
	}
	f.in[id], f.configs[id], f.places[id] = r.PodSandboxId, r.Config, r.SandboxConfig
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

func (f *fake) StartContainer(_ context.Context, r *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	c := f.containers[r.ContainerId]
	if f.starting != nil {
		return nil, f.starting(c)
	}
	if f.startErr != nil {
		c.State, c.ExitCode, c.Reason, c.Message, c.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, 128, "StartError", f.startErr.Error(), time.Now().UnixNano()
		return nil, f.startErr
	}
	c.State, c.StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	return &runtimeapi.StartContainerResponse{}, nil
}

func (f *fake) UpdateContainerResources(_ context.Context, r *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	f.updates = append(f.updates, r.Linux)
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// exit ends a container. The caller holds mu.
func (f *fake) exit(id string, code int32) {
	c := f.containers[id]
	c.State, c.ExitCode, c.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, code, time.Now().UnixNano()
}

func (f *fake) StopContainer(_ context.Context, r *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	if c := f.containers[r.ContainerId]; c != nil && c.State != runtimeapi.ContainerState_CONTAINER_EXITED {
		f.exit(r.ContainerId, 137)
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

func (f *fake) RemoveContainer(_ context.Context, r *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	delete(f.containers, r.ContainerId)
	return &runtimeapi.RemoveContainerResponse{}, nil
}

func (f *fake) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	response := &runtimeapi.ListContainersResponse{}
	for id, c := range f.containers {
		response.Containers = append(response.Containers, &runtimeapi.Container{Id: id, PodSandboxId: f.in[id], Metadata: c.Metadata, State: c.State, Labels: c.Labels, Annotations: c.Annotations, ImageRef: c.ImageRef})
	}
	return response, nil
}

func (f *fake) ContainerStatus(_ context.Context, r *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	if c := f.containers[r.ContainerId]; c != nil {
		return &runtimeapi.ContainerStatusResponse{Status: c}, nil
	}
	return nil, status.Error(codes.NotFound, "no such container")
}

// ExecSync runs no command: none of them ends in its time.
func (f *fake) ExecSync(ctx context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if frozen := f.frozen; frozen != nil { // with the lock: nothing else is answered either
		<-frozen
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-time.After(time.Duration(r.Timeout) * 10 * time.Millisecond): // its seconds are short
		return nil, status.Error(codes.DeadlineExceeded, "timeout exceeded")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fake) ContainerStats(_ context.Context, r *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	return &runtimeapi.ContainerStatsResponse{Stats: f.stats(r.ContainerId)}, nil
}

func (f *fake) stats(id string) *runtimeapi.ContainerStats {
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: id}, Memory: &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: 3}},
		WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: f.written}, InodesUsed: &runtimeapi.UInt64Value{Value: 2}},
	}
}

func (f *fake) ListContainerStats(_ context.Context, r *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	if f.statsErr != nil {
		return nil, f.statsErr
	}
	response := &runtimeapi.ListContainerStatsResponse{}
	for id, c := range f.containers {
		if c.Labels[labelPodUID] == r.Filter.LabelSelector[labelPodUID] {
			response.Stats = append(response.Stats, f.stats(id))
		}
	}
	return response, nil
}

func (f *fake) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	return &runtimeapi.ImageStatusResponse{Image: f.images[r.Image.Image]}, nil
}

func (f *fake) PullImage(ctx context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	if pulling := f.pulling; pulling != nil { // other calls go on meanwhile
		f.mu.Unlock()
		err := pulling(ctx)
		f.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	if f.pullErr != nil {
		return nil, f.pullErr
	}
	if r.GetAuth().GetPassword() != f.password {
		return nil, errors.New("pull access denied")
	}
	f.images[r.Image.Image] = &runtimeapi.Image{Id: "sha256:pulled"}
	return &runtimeapi.PullImageResponse{ImageRef: "sha256:pulled"}, nil
}

// node is a runtime over a fake. Nothing runs by itself: tests list.
type node struct {
	*Runtime
	t    *testing.T
	fake *fake
	dir  string
}

func newNode(t *testing.T) *node {
	n := &node{t: t, fake: newFake(t), dir: t.TempDir()}
	n.open()
	return n
}

// open is the start of statusd; a second one is a restart after a kill.
func (n *node) open() {
	n.t.Helper()
	rt, err := New(Options{
		Dir: n.dir, Endpoint: "unix://" + n.fake.socket, LogDir: filepath.Join(n.dir, "logs"), CgroupParent: "/proc/no-such-group",
		ResolvConf: filepath.Join(n.dir, "resolv.conf"), Addresses: func() []string { return []string{"192.0.2.1"} },
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.Runtime = rt
	n.t.Cleanup(func() { rt.Close() })
}

func (n *node) list() {
	n.t.Helper()
	if err := n.relist(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

func testPod(uid types.UID) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid},
		Spec:       v1.PodSpec{DNSPolicy: v1.DNSDefault, Containers: []v1.Container{{Name: "main", Image: "web:1", TerminationMessagePath: "/dev/termination-log"}}},
	}
}

// start starts the pod and its container.
func (n *node) start(pod *v1.Pod) string {
	n.t.Helper()
	if err := n.StartPod(n.t.Context(), pod); err != nil {
		n.t.Fatal(err)
	}
	id, err := n.StartContainer(n.t.Context(), pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		n.t.Fatal(err)
	}
	return id
}

func (n *node) only(uid types.UID) runtime.Container {
	n.t.Helper()
	p, err := n.Pod(n.t.Context(), uid)
	if err != nil || len(p.Containers) == 0 {
		n.t.Fatalf("got %+v, %v; want a container", p, err)
	}
	return p.Containers[0]
}
