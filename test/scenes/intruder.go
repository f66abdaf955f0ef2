package scenes

import (
	"context"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/nodeclient"
	"github.com/statusd/statusd/test/stock"
)

// intruder starts a container in the sandbox of a pod, as crictl does.
func intruder() Lie {
	return Lie{Name: "a container that the spec does not have", What: "created through CRI in the sandbox of a pod", Lasts: 40 * time.Second, Why: "the kubelet stops and removes it within seconds", Prepare: withPods("host"),
		Break: func(ctx context.Context, s *Stage) error {
			pod, err := s.Pod(ctx, "host")
			if err != nil {
				return err
			}
			return intrude(ctx, "unix://"+s.Node.Containerd.Socket(), string(pod.UID))
		},
		Mend: deleting("host")}
}

func intruderBehindFrozen() Lie {
	lie := intruder()
	begin := lie.Break
	lie.Name, lie.What, lie.Lasts, lie.Expect, lie.Why = "a container that the spec does not have, behind a frozen kubelet", "SIGSTOP to the kubelet, then created through CRI in the sandbox of a pod", 90*time.Second, audit.ContainerWithoutPod, ""
	lie.Halts = true
	lie.Break = func(ctx context.Context, s *Stage) error {
		if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
			return err
		}
		return begin(ctx, s)
	}
	lie.Mend = func(ctx context.Context, s *Stage) error {
		s.Node.Kubelet.Process().Resume()
		return s.Delete(ctx, "host")
	}
	return lie
}

// intrude runs another container in the sandbox of a pod.
func intrude(ctx context.Context, endpoint, uid string) error {
	conn, err := nodeclient.Runtime(endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	runtime := runtimeapi.NewRuntimeServiceClient(conn)
	list, err := runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": uid}}})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("pod %s has %d sandboxes", uid, len(list.Items))
	}
	sandbox := list.Items[0]
	created, err := runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox.Id,
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "intruder"}, Image: &runtimeapi.ImageSpec{Image: stock.Image},
			Command: []string{"/bin/sh", "-c", stock.Forever}, Linux: &runtimeapi.LinuxContainerConfig{}},
		SandboxConfig: &runtimeapi.PodSandboxConfig{Metadata: sandbox.Metadata, Labels: sandbox.Labels, Linux: &runtimeapi.LinuxPodSandboxConfig{
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}}})
	if err != nil {
		return err
	}
	_, err = runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.ContainerId})
	return err
}
