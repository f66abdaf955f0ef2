//go:build real

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Under memory pressure pods are evicted, static ones stay, the Node says so, and a pod
// that asks for nothing is refused.
func TestMemoryPressureEvictsAndRefuses(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "short").join(server)
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	history, statics := follow(t, server.Admin(), namespace), follow(t, server.Admin(), metav1.NamespaceDefault)
	server.CreatePod(t, shellPod(namespace, "victim", "short", "while :; do sleep 0.1; done"))
	history.await("victim", "that it runs", isReady)
	statics.await("static-short", "that it runs", isReady)
	d.stop()

	d.config.Eviction.Hard["memory.available"] = "99.9%" // no machine has that
	d.start()
	evicted := history.await("victim", "that it is evicted", func(_ watch.EventType, pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
	if evicted.Status.Reason != "Evicted" || !strings.HasPrefix(evicted.Status.Message, "The node was low on resource: memory. Threshold quantity: ") {
		t.Errorf("evicted as %q: %q", evicted.Status.Reason, evicted.Status.Message)
	}
	if _, body, err := d.get("/apis/v1/pods/" + namespace + "/victim"); err != nil || !strings.Contains(body, ", because the node had ") || !strings.Contains(body, " of memory left") {
		t.Errorf("the explanation does not say what the node had left: %s, %v", body, err)
	}
	if !slices.ContainsFunc(evicted.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue && c.Reason == "TerminationByKubelet"
	}) {
		t.Errorf("conditions %+v, want a DisruptionTarget", evicted.Status.Conditions)
	}
	until(t, "the Node shows the pressure", func() bool {
		return slices.ContainsFunc(getNode(t, server, "short").Status.Conditions, func(c v1.NodeCondition) bool {
			return c.Type == v1.NodeMemoryPressure && c.Status == v1.ConditionTrue
		})
	})
	server.CreatePod(t, shellPod(namespace, "refused", "short", "sleep 1000000"))
	refused := history.await("refused", "that it is refused", func(_ watch.EventType, pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
	if refused.Status.Reason != "Evicted" || refused.Status.Message != "Pod was rejected: The node had condition: [MemoryPressure]. " {
		t.Errorf("refused as %q: %q", refused.Status.Reason, refused.Status.Message)
	}
	static, err := server.Admin().CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), "static-short", metav1.GetOptions{})
	if err != nil || static.Status.Phase != v1.PodRunning {
		t.Errorf("the static pod is %s, %v, want it to stay", static.Status.Phase, err)
	}
	d.stop()
}

// A resize waits until there is room; an edited image that cannot be run restarts the
// container, and the status says why it does not start.
func TestEditsOfARunningPod(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "edits").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	pod := shellPod(namespace, "web", "edits", "while :; do sleep 0.1; done")
	pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m")}
	server.CreatePod(t, pod)
	history.await("web", "that it runs", isReady)
	neighbor := shellPod(namespace, "neighbor", "edits", "while :; do sleep 0.1; done")
	most := getNode(t, server, "edits").Status.Allocatable.Cpu().DeepCopy()
	most.Sub(resource.MustParse("100m"))
	neighbor.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: most}
	server.CreatePod(t, neighbor)
	history.await("neighbor", "that it runs", isReady)

	patch := func(text string, sub ...string) {
		t.Helper()
		if _, err := server.Admin().CoreV1().Pods(namespace).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, sub...); err != nil {
			t.Fatal(err)
		}
	}
	name := pod.Spec.Containers[0].Name
	patch(`{"spec":{"containers":[{"name":"`+name+`","resources":{"requests":{"cpu":"200m"}}}]}}`, "resize")
	pending := history.await("web", "that the resize waits", func(_ watch.EventType, pod *v1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == v1.PodResizePending && c.Reason == v1.PodReasonDeferred
		})
	})
	if got := pending.Status.ContainerStatuses[0].AllocatedResources.Cpu().String(); got != "10m" {
		t.Errorf("allocated %s, want 10m as before", got)
	}
	now := int64(0)
	if err := server.Admin().CoreV1().Pods(namespace).Delete(t.Context(), "neighbor", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	history.await("web", "that the resize is granted", func(_ watch.EventType, pod *v1.Pod) bool {
		return pod.Status.ContainerStatuses[0].AllocatedResources.Cpu().String() == "200m" &&
			!slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizePending })
	})

	patch(`{"spec":{"containers":[{"name":"` + name + `","image":"nginx:1.29"}]}}`)
	waiting := history.await("web", "that the new image does not run", func(_ watch.EventType, pod *v1.Pod) bool {
		c := pod.Status.ContainerStatuses[0]
		if c.State.Running != nil && c.Image != "host" {
			t.Errorf("status says that %s runs", c.Image)
		}
		return c.State.Waiting != nil && (c.State.Waiting.Reason == "ErrImagePull" || c.State.Waiting.Reason == "ImagePullBackOff")
	})
	if message := waiting.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(message, "nginx:1.29") {
		t.Errorf("the message is %q, want the image in it", message)
	}
	d.stop()
}

// A finished pod keeps its logs and not its volumes, and gives its port back; two pods that
// run cannot have one port.
func TestWhatAFinishedPodKeeps(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "ports").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	serving := func(name, script string) *v1.Pod {
		pod := shellPod(namespace, name, "ports", script)
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 18096, HostPort: 18096}}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: "data", MountPath: "/data"})
		return server.CreatePod(t, pod)
	}
	hasEnded := func(_ watch.EventType, pod *v1.Pod) bool {
		return pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded
	}
	job := serving("job", "echo hello; echo x > $STATUSD_VOLUME_DATA/file")
	history.await("job", "that it has ended", hasEnded)
	directory := d.podDirectory(job)
	until(t, "the volumes of the finished pod are gone", func() bool { return !exists(filepath.Join(directory, "volumes")) })
	if logs, err := filepath.Glob(filepath.Join(directory, "containers", "*", "logs", "log")); err != nil || len(logs) != 1 {
		t.Errorf("logs of the finished pod: %v, %v, want them kept", logs, err)
	}
	serving("first", "while :; do sleep 0.1; done")
	history.await("first", "that it runs", isReady)
	serving("second", "while :; do sleep 0.1; done")
	if second := history.await("second", "that it is rejected", hasEnded); second.Status.Reason != "NodePorts" {
		t.Errorf("the second pod with the port is %q: %q, want NodePorts", second.Status.Reason, second.Status.Message)
	}
	d.stop()
}
