package cri

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func userPod(uid types.UID) *v1.Pod {
	pod := testPod(uid)
	pod.Spec.HostUsers = new(bool)
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	return pod
}

var userHandler = []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}}

// Each pod has users of its own, in its sandbox, its containers and its volumes, and keeps them through a restart of statusd.
func TestUserNamespaces(t *testing.T) {
	n := newNode(t)
	n.fake.handlers = userHandler
	n.open()
	first, second := userPod("uid-1"), userPod("uid-2")
	n.start(first)
	n.open()
	n.start(second)
	n.start(testPod("uid-3"))
	want := map[types.UID]uint32{"uid-1": firstUser, "uid-2": firstUser + usersPerPod, "uid-3": 0}
	check := func(what string, uid types.UID, users *runtimeapi.UserNamespace) {
		t.Helper()
		switch {
		case want[uid] == 0 && users == nil:
		case users.GetMode() != runtimeapi.NamespaceMode_POD, len(users.Uids) != 1, users.Uids[0].HostId != want[uid], users.Uids[0].Length != usersPerPod, users.Gids[0].HostId != want[uid]:
			t.Errorf("%s of pod %s: got %v, want users from %d", what, uid, users, want[uid])
		}
	}
	n.fake.mu.Lock()
	defer n.fake.mu.Unlock()
	for _, config := range n.fake.sandboxConfigs {
		check("sandbox", types.UID(config.Metadata.Uid), config.Linux.SecurityContext.NamespaceOptions.UsernsOptions)
	}
	for _, config := range n.fake.configs {
		uid := types.UID(config.Labels[labelPodUID])
		check("container", uid, config.Linux.SecurityContext.NamespaceOptions.UsernsOptions)
		for _, m := range config.Mounts {
			if m.ContainerPath == "/data" && (len(m.UidMappings) != 1 || m.UidMappings[0].HostId != want[uid] || m.GidMappings[0].HostId != want[uid]) {
				t.Errorf("volume of pod %s: got %v, want users from %d", uid, m.UidMappings, want[uid])
			}
		}
	}
}

// A container runtime without user namespaces keeps the pod waiting, in the kubelet's words. One that gets them by an upgrade starts it.
func TestUserNamespaces_NeedTheContainerRuntime(t *testing.T) {
	n := newNode(t)
	pod := userPod("uid-1")
	err := n.StartPod(t.Context(), pod)
	if err == nil || !strings.HasSuffix(err.Error(), "can't set `spec.hostUsers: false`, runtime does not support user namespaces") {
		t.Fatalf("got %v, want the kubelet's words", err)
	}
	n.fake.change(func() { n.fake.down = status.Error(codes.Unavailable, "upgraded") })
	n.look(t.Context())
	n.fake.change(func() { n.fake.down, n.fake.handlers = nil, userHandler })
	n.look(t.Context())
	if err := n.StartPod(t.Context(), pod); err != nil {
		t.Errorf("after the upgrade: %v", err)
	}
}
