package process

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/runtime"
)

func TestUsageOfAPod(t *testing.T) {
	h := newHost(t)
	h.open(t)
	const MiB = 1 << 20
	pod := scriptPod("pod", "dd if=/dev/zero of=$STATUSD_VOLUME_DATA/file bs=1M count=3 2>/dev/null; "+
		"ln $STATUSD_VOLUME_DATA/file $STATUSD_VOLUME_DATA/again; "+
		"x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo up > "+h.pipe+"; sleep 1000; echo $x")
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	id := h.start(t, pod)
	h.hear(t)
	got, err := h.PodUsage(t.Context(), "pod")
	if err != nil {
		t.Fatal(err)
	}
	if got.MemoryBytes < 18*MiB || got.MemoryBytes > 500*MiB || got.Containers["main"].MemoryBytes != got.MemoryBytes {
		t.Errorf("memory %d, of main %d, want about 20 MiB, all of main", got.MemoryBytes, got.Containers["main"].MemoryBytes)
	}
	if got.VolumeBytes["data"] < 3*MiB || got.VolumeBytes["data"] > 4*MiB || got.DiskBytes < got.VolumeBytes["data"] {
		t.Errorf("volume %d, disk %d, want 3 MiB, a file with two names counted once", got.VolumeBytes["data"], got.DiskBytes)
	}
	if got.Processes < 1 || got.Inodes < 5 {
		t.Errorf("processes %d, inodes %d, want a shell at least, and its files", got.Processes, got.Inodes)
	}
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod")
	if err := h.RemoveVolumes(t.Context(), "pod"); err != nil {
		t.Fatal(err)
	}
	if got, err := h.PodUsage(t.Context(), "pod"); err != nil || got.MemoryBytes != 0 || got.VolumeBytes["data"] != 0 {
		t.Errorf("after the end: got %+v, %v, want no memory and no volumes", got, err)
	}
	if _, err := h.PodUsage(t.Context(), "unknown"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("an unknown pod: got %v, want %v", err, runtime.ErrNotFound)
	}
}

func TestLogsOfAnEndedPodAreRemovedOnDemand(t *testing.T) {
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", "echo hello"))
	h.awaitExit(t, "pod")
	for range 2 {
		if err := h.RemoveLogs(t.Context(), "pod"); err != nil {
			t.Errorf("remove logs: %v", err)
		}
	}
	logs, err := h.Logs(t.Context(), id, runtime.LogOptions{})
	if err != nil {
		t.Fatalf("logs that were removed: %v", err)
	}
	defer logs.Close()
	if n, err := logs.Read(make([]byte, 10)); n > 0 {
		t.Errorf("logs that were removed: %d bytes, %v", n, err)
	}
}

func TestWithoutControlGroupsAResizeOfRequestsNeedsNothing(t *testing.T) {
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", "echo up > "+h.pipe+"; sleep 1000"))
	h.hear(t)
	cpu := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	if err := h.ResizeContainer(t.Context(), id, v1.ResourceRequirements{Requests: cpu}); err != nil {
		t.Errorf("requests: %v", err)
	}
	if err := h.ResizeContainer(t.Context(), id, v1.ResourceRequirements{Limits: cpu}); err == nil {
		t.Error("limits: got no error, though nothing enforces them")
	}
	if err := h.ResizeContainer(t.Context(), "process://unknown", v1.ResourceRequirements{}); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("an unknown container: got %v, want %v", err, runtime.ErrNotFound)
	}
}
