//go:build real

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/stock"
)

// handover is a node whose pods change hands.
type handover struct {
	t       *testing.T
	n       *stock.Node
	ctx     context.Context
	program string
}

// A node moves from the kubelet to statusd and back: the container runs on with its volumes, and each agent writes them, restarts the
// container and ends the pod.
func TestAdopt_ContainersRunOnThroughBothDirections(t *testing.T) {
	program, err := binaries.BuildStatusd(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	h := &handover{t, stock.Start(t, stock.Options{Settings: "syncFrequency: 2s\n"}), stock.Context(t), program}
	h.must(h.n.ConfigureStatusd(nil))
	h.setText("first")
	h.create("web")
	before := h.await("web", "ready", stock.Ready)
	h.sees("web", "first")

	h.n.Kubelet.Process().Kill()
	h.says(0, "took over 1 pods", "adopt", "--kubelet-dir", h.n.Kubelet.Root())
	statusd := h.start()
	h.create("next")
	h.await("next", "ready under statusd", stock.Ready)
	h.setText("second")
	h.sees("web", "second")
	h.same(before, h.await("web", "ready under statusd", stock.Ready))

	h.must(h.n.KillContainer(before.Status.ContainerStatuses[0].ContainerID))
	restarted := h.await("web", "restarted by statusd", func(p *v1.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return stock.Ready(p) && s.RestartCount == 1 && s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.ExitCode == 137
	})
	h.sees("web", "second")
	h.must(stock.Await(h.ctx, func() error { // the container runs before its command has noted the start
		if starts := h.file("web", "starts"); starts != "start\nstart\n" {
			return fmt.Errorf("the restarted container has another volume: %q", starts)
		}
		return nil
	}))

	statusd.Signal(syscall.SIGTERM)
	<-statusd.Exited()
	h.says(0, "gave 2 pods", "adopt", "--back", "--kubelet-dir", h.n.Kubelet.Root())
	h.must(h.n.Kubelet.Start())
	h.create("last")
	h.await("last", "ready under the kubelet", stock.Ready)
	h.setText("third")
	h.sees("web", "third")
	h.sees("next", "third")
	h.same(restarted, h.await("web", "ready under the kubelet", stock.Ready))
	h.says(1, "a kubelet runs", "adopt", "--kubelet-dir", h.n.Kubelet.Root())
	for _, name := range []string{"web", "next", "last"} {
		h.must(h.n.Admin().CoreV1().Pods("default").Delete(h.ctx, name, metav1.DeleteOptions{}))
	}
	h.must(stock.Await(h.ctx, func() error {
		pods, err := h.n.Pods()
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("pods that have control groups: %v", pods)
		}
		return err
	}))
}

// What statusd would start a second time is named, and nothing changes hands.
func TestAdopt_StaticPodIsRefused(t *testing.T) {
	program, err := binaries.BuildStatusd(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	h := &handover{t, stock.Start(t, stock.Options{}), stock.Context(t), program}
	h.must(h.n.ConfigureStatusd(nil))
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: fixed, namespace: default}\nspec: {hostNetwork: true, containers: [{name: main, image: " +
		stock.Image + ", imagePullPolicy: Never, command: [/bin/sh, -c, '" + stock.Forever + "']}]}\n"
	h.must(os.WriteFile(filepath.Join(h.n.Manifests(), "fixed.yaml"), []byte(manifest), 0o644))
	h.await("fixed-"+h.n.Name, "ready", stock.Ready)
	h.n.Kubelet.Process().Kill()
	h.says(1, "this static pod", "adopt", "--kubelet-dir", h.n.Kubelet.Root())
}

func (h *handover) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *handover) start() *stock.Process {
	h.t.Helper()
	p, err := h.n.Start("statusd", h.program, "run", "--config", h.n.StatusdConfig())
	h.must(err)
	return p
}

// says runs statusd on the node and looks at its exit code and its output.
func (h *handover) says(code int, text string, args ...string) {
	h.t.Helper()
	p, err := h.n.Start("adopt", h.program, append(args, "--config", h.n.StatusdConfig())...)
	h.must(err)
	status, _ := p.Ended()
	output, err := os.ReadFile(p.Log())
	h.must(err)
	if status.ExitStatus() != code || !strings.Contains(string(output), text) {
		h.t.Fatalf("statusd %v: exit code %d, want %d with %q:\n%s", args, status.ExitStatus(), code, text, output)
	}
}

// setText changes the config map that all pods have mounted.
func (h *handover) setText(text string) {
	h.t.Helper()
	h.must(stock.Await(h.ctx, func() error {
		maps := h.n.Admin().CoreV1().ConfigMaps("default")
		want := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Data: map[string]string{"text": text}}
		_, err := maps.Update(h.ctx, want, metav1.UpdateOptions{})
		if err != nil {
			_, err = maps.Create(h.ctx, want, metav1.CreateOptions{})
		}
		return err
	}))
}

// create makes a pod that notes its starts, and shows what it sees of the config map, of its labels and of a volume in memory.
func (h *handover) create(name string) {
	h.t.Helper()
	pod := h.n.Pod(name, "echo start >>/data/starts; while :; do cat /config/text /self/name /memory/kept >/data/new 2>/dev/null; cp /data/new /data/seen; sleep 1; done")
	pod.Labels = map[string]string{"name": name}
	volume := func(name string, source v1.VolumeSource) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	volume("data", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	volume("memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})
	volume("config", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "config"}}})
	volume("self", v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels['name']"}}}}})
	pod.Spec.Containers[0].Command[2] = "cat /memory/kept 2>/dev/null || echo -n kept >/memory/kept; " + pod.Spec.Containers[0].Command[2]
	_, err := h.n.Create(h.ctx, pod)
	h.must(err)
}

func (h *handover) await(name, what string, wanted func(*v1.Pod) bool) *v1.Pod {
	h.t.Helper()
	pod, err := h.n.AwaitPod(h.ctx, "default", name, what, wanted)
	h.must(err)
	return pod
}

// file is a file of the pod's volume on disk, wherever an agent has it.
func (h *handover) file(pod, name string) string {
	for _, pattern := range []string{h.n.Kubelet.Root() + "/pods/*/volumes/kubernetes.io~empty-dir/data", filepath.Join(h.n.Dir(), "disk/statusd/runtime/cri/pods/*/volumes/data")} {
		dirs, _ := filepath.Glob(filepath.Join(h.n.Root(), pattern))
		for _, dir := range dirs {
			seen, err := os.ReadFile(filepath.Join(dir, "seen"))
			if err == nil && strings.Contains(string(seen), pod) {
				content, _ := os.ReadFile(filepath.Join(dir, name))
				return string(content)
			}
		}
	}
	return ""
}

// sees waits until the container of the pod sees the text, with its label and what it has kept in memory.
func (h *handover) sees(pod, text string) {
	h.t.Helper()
	want := text + pod + "kept"
	h.must(stock.Await(h.ctx, func() error {
		if got := h.file(pod, "seen"); got != want {
			return fmt.Errorf("pod %s sees %q, want %q", pod, got, want)
		}
		return nil
	}))
}

// same makes sure that the container was not touched.
func (h *handover) same(before, after *v1.Pod) {
	h.t.Helper()
	a, b := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if a.ContainerID != b.ContainerID || a.RestartCount != b.RestartCount || !a.State.Running.StartedAt.Equal(&b.State.Running.StartedAt) || a.ImageID != b.ImageID {
		h.t.Errorf("got container %+v, want %+v", b, a)
	}
}
