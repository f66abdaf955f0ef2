package podstatus_test

import (
	"encoding/json"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/statusd/statusd/internal/podrules"
)

// Each benchmark measures ours and, with the timer stopped, what apimachinery takes for the
// same pair in the same run, and reports the ratio: absolute numbers depend on the machine.

// benchPod has two containers with resources and five conditions, as in the reference
// measurements of the kubelet.
func benchPod() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: testUID, Generation: 1}}
	pod.Spec.Containers = []v1.Container{{Name: "app"}, {Name: "proxy"}}
	pod.Status = v1.PodStatus{
		ObservedGeneration: 1, Phase: v1.PodRunning, QOSClass: v1.PodQOSBurstable,
		HostIP: "192.0.2.1", HostIPs: []v1.HostIP{{IP: "192.0.2.1"}},
		PodIP: "10.0.0.1", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
		StartTime: &metav1.Time{Time: epoch},
	}
	for _, kind := range []v1.PodConditionType{
		v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
			Type: kind, Status: v1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(epoch),
		})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, benchContainer(c.Name))
	}
	return pod
}

func benchContainer(name string) v1.ContainerStatus {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("256Mi")}
	return v1.ContainerStatus{
		Name: name, Ready: true, Started: new(true), RestartCount: 1,
		Image: "registry.example/team/" + name + ":1.2.3", ImageID: "registry.example/team/" + name + "@sha256:0123456789abcdef",
		ContainerID:        "containerd://0123456789abcdef0123456789abcdef" + name,
		State:              v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch)}},
		AllocatedResources: list.DeepCopy(),
		Resources:          &v1.ResourceRequirements{Limits: list.DeepCopy(), Requests: list.DeepCopy()},
		VolumeMounts:       []v1.VolumeMountStatus{{Name: "data", MountPath: "/data"}},
	}
}

// reporter builds the status again, as a node agent does on each sync: other memory,
// fractions of seconds, containers in the order of the runtime.
func reporter(status *v1.PodStatus) *v1.PodStatus {
	raw := status.DeepCopy()
	for i := range raw.ContainerStatuses {
		raw.ContainerStatuses[i].State.Running.StartedAt = metav1.NewTime(epoch.Add(123 * time.Millisecond))
	}
	raw.ContainerStatuses[0], raw.ContainerStatuses[1] = raw.ContainerStatuses[1], raw.ContainerStatuses[0]
	return raw
}

// reportRatio measures the rival and reports how many times longer it takes.
func reportRatio(b *testing.B, unit string, rival func()) {
	ours := float64(b.Elapsed()) / float64(b.N)
	b.StopTimer()
	rival()
	runs, start := 0, time.Now()
	for time.Since(start) < 100*time.Millisecond {
		for range 10 {
			rival()
		}
		runs += 10
	}
	b.ReportMetric(float64(time.Since(start))/float64(runs)/ours, unit)
}

func BenchmarkEqualUnchanged(b *testing.B) {
	pod := benchPod()
	x := podrules.Normalize(pod, &pod.Status)
	y := podrules.Normalize(pod, reporter(&pod.Status))
	b.ReportAllocs()
	for b.Loop() {
		if !podrules.Equal(&x, &y) {
			b.Fatal("not equal")
		}
	}
	reportRatio(b, "x-vs-semantic", func() { equality.Semantic.DeepEqual(x, y) })
}

func BenchmarkUnchanged(b *testing.B) {
	pod := benchPod()
	cached := podrules.Normalize(pod, &pod.Status)
	incoming := reporter(&pod.Status)
	normal := podrules.Normalize(pod, incoming)
	b.ReportAllocs()
	for b.Loop() {
		if !podrules.Unchanged(pod, &cached, incoming) {
			b.Fatal("changed")
		}
	}
	reportRatio(b, "x-vs-semantic", func() { equality.Semantic.DeepEqual(cached, normal) })
}

func BenchmarkNeedsReconcileNot(b *testing.B) {
	pod := benchPod()
	cached := podrules.Normalize(pod, &pod.Status)
	api := stored(b, &cached)
	b.ReportAllocs()
	for b.Loop() {
		if podrules.NeedsReconcile(pod, api, &cached) {
			b.Fatal("differs")
		}
	}
	reportRatio(b, "x-vs-semantic", func() { equality.Semantic.DeepEqual(cached, *api) })
}

func BenchmarkNext(b *testing.B) {
	pod := benchPod()
	pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[:1]
	pod.Status.Conditions = pod.Status.Conditions[:4]
	old := podrules.Normalize(pod, &pod.Status)
	incoming := pod.Status.DeepCopy()
	incoming.ContainerStatuses[0].RestartCount++
	b.ReportAllocs()
	for b.Loop() {
		podrules.Next(pod, &old, incoming, epoch)
	}
}

// benchPair is a base and a merged status with two changes: a container is not ready, and
// so is the pod.
func benchPair() (pod *v1.Pod, base, cached *v1.PodStatus) {
	pod = benchPod()
	normal := podrules.Normalize(pod, &pod.Status)
	changed := normal.DeepCopy()
	changed.ContainerStatuses[1].Ready = false
	changed.Conditions[2].Status = v1.ConditionFalse
	return pod, &normal, changed
}

func BenchmarkMerge(b *testing.B) {
	pod, base, cached := benchPair()
	b.ReportAllocs()
	for b.Loop() {
		podrules.Merge(pod, base, cached, false, epoch)
	}
}

func BenchmarkPatch(b *testing.B) {
	_, base, desired := benchPair()
	benchmarkPatch(b, base, desired)
}

func BenchmarkPatchNothing(b *testing.B) {
	_, base, _ := benchPair()
	benchmarkPatch(b, base, base.DeepCopy())
}

func benchmarkPatch(b *testing.B, base, desired *v1.PodStatus) {
	b.ReportAllocs()
	for b.Loop() {
		mustPatch(b, base, desired)
	}
	reportRatio(b, "x-vs-twoway", func() {
		before, _ := json.Marshal(v1.Pod{Status: *base})
		after, _ := json.Marshal(v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: testUID}, Status: *desired})
		if _, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.Pod{}); err != nil {
			b.Fatal(err)
		}
	})
}
