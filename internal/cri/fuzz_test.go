package cri

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

// answers is a container runtime whose answers are read from bytes.
type answers struct {
	runtimeapi.RuntimeServiceClient
	containers *runtimeapi.ListContainersResponse
	sandboxes  *runtimeapi.ListPodSandboxResponse
	container  *runtimeapi.ContainerStatusResponse
	sandbox    *runtimeapi.PodSandboxStatusResponse
}

func (a *answers) ListContainers(context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	return a.containers, nil
}

func (a *answers) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error) {
	return a.sandboxes, nil
}

func (a *answers) ContainerStatus(context.Context, *runtimeapi.ContainerStatusRequest, ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	return a.container, nil
}

func (a *answers) PodSandboxStatus(context.Context, *runtimeapi.PodSandboxStatusRequest, ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error) {
	return a.sandbox, nil
}

func (a *answers) StopContainer(context.Context, *runtimeapi.StopContainerRequest, ...grpc.CallOption) (*runtimeapi.StopContainerResponse, error) {
	return nil, status.Error(codes.NotFound, "no such container")
}

func (a *answers) RemoveContainer(context.Context, *runtimeapi.RemoveContainerRequest, ...grpc.CallOption) (*runtimeapi.RemoveContainerResponse, error) {
	return nil, status.Error(codes.NotFound, "no such container")
}

// Whatever a container runtime answers to lists and questions, they are taken without a panic, and a container that has exited stays so.
func FuzzAnswers(f *testing.F) {
	encode := func(m proto.Message) []byte {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	labels := map[string]string{labelPodUID: "a", labelContainerName: "main"}
	list := encode(&runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{{Id: "c", Labels: labels, State: runtimeapi.ContainerState_CONTAINER_RUNNING}}})
	sandboxes := encode(&runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{{Id: "s", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "a"}}}})
	exited := encode(&runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{Id: "c", Labels: labels, State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 137}})
	network := encode(&runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.1.2.3"}}})
	f.Add(list, sandboxes, exited, network)
	f.Add(list, []byte{}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, list, sandboxes, container, sandbox []byte) {
		a := &answers{
			containers: &runtimeapi.ListContainersResponse{}, sandboxes: &runtimeapi.ListPodSandboxResponse{},
			container: &runtimeapi.ContainerStatusResponse{}, sandbox: &runtimeapi.PodSandboxStatusResponse{},
		}
		for m, data := range map[proto.Message][]byte{a.containers: list, a.sandboxes: sandboxes, a.container: container, a.sandbox: sandbox} {
			if proto.Unmarshal(data, m) != nil {
				return // gRPC makes that an error of the call
			}
		}
		r := &Runtime{
			options: Options{Logger: slog.New(slog.DiscardHandler), Dir: t.TempDir(), LogDir: t.TempDir(), writeRecord: func(string, []byte) error { return nil }}, problems: map[string]runtime.Problem{},
			cri: &connection{RuntimeServiceClient: a, name: "containerd"}, pods: map[types.UID]*pod{},
		}
		r.life, r.finish = context.WithCancel(t.Context())
		defer r.stops.wait()
		defer r.finish()
		manifest := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "a"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}}}
		r.pods["a"] = &pod{manifest: manifest, dir: r.podDir("a"), createdAt: time.Now()}
		over := map[string]bool{}
		for range 3 {
			_ = r.relist(t.Context()) // an answer that cannot be used is an error
			r.mu.Lock()
			for _, c := range r.pods["a"].containers {
				if over[c.id] && c.view.State != runtime.Exited {
					t.Errorf("container %q is %v after it had exited", c.id, c.view.State)
				}
				over[c.id] = over[c.id] || c.view.State == runtime.Exited
			}
			r.mu.Unlock()
		}
	})
}

// Whatever a pull secret has, it is read without a panic, and credentials for one registry are for no image of another.
func FuzzPullSecret(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://example.com/v1/":{"auth":"YTpi"},"*.example.com/team":{"username":"a"}}}`), "example.com/app:1")
	f.Add([]byte(`{"[":{"auth":"="}}`), "app")
	f.Fuzz(func(t *testing.T, data []byte, image string) {
		for _, secret := range []*v1.Secret{
			{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: data}},
			{Type: v1.SecretTypeDockercfg, Data: map[string][]byte{v1.DockerConfigKey: data}},
		} {
			for registry, e := range entries(secret) {
				e.auth(registry)
				if matches(registry, image) && matches("other.invalid", image) && !strings.Contains(registry, "other.invalid") && !strings.Contains(registry, "*") && !strings.Contains(registry, "?") && !strings.Contains(registry, "[") {
					t.Errorf("the credentials of %q are for %q", registry, image)
				}
			}
		}
	})
}
