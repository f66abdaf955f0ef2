//go:build real

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A container that is asked to end may finish its work. Its end is reported before the pod
// goes, and then nothing is left of it.
func TestDeleteWithGrace(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "graceful").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	armed := filepath.Join(t.TempDir(), "armed")
	pod := server.CreatePod(t, shellPod(namespace, "polite", "graceful",
		`trap 'echo bye > $STATUSD_TERMINATION_LOG; exit 7' TERM; touch `+armed+`; while :; do sleep 0.1; done`))
	running := history.await("polite", "that it runs", isReady)
	until(t, "the container listens to signals", func() bool { return exists(armed) })
	if err := server.Admin().CoreV1().Pods(namespace).Delete(t.Context(), "polite", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	last := history.await("polite", "that it is gone", isDeleted)
	ended := last.Status.ContainerStatuses[0].State.Terminated
	if ended == nil || ended.ExitCode != 7 || strings.TrimSpace(ended.Message) != "bye" || ended.ContainerID != running.Status.ContainerStatuses[0].ContainerID {
		events, _ := history.of("polite")
		t.Errorf("got %v as the end of the container, want exit code 7 and its last word, before the pod goes\n%s", ended, story(events))
	}
	until(t, "nothing of the pod is left", func() bool { return !exists(d.podDirectory(pod)) })
	d.stop()
}

// A pod that is deleted without grace is gone from the API at once, and its container,
// however stubborn, soon after.
func TestForceDelete(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "forced").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	armed := filepath.Join(t.TempDir(), "armed")
	pod := server.CreatePod(t, shellPod(namespace, "stubborn", "forced", `trap '' TERM; touch `+armed+`; while :; do sleep 0.1; done`))
	history.await("stubborn", "that it runs", isReady)
	until(t, "the container is deaf to signals", func() bool { return exists(armed) })
	now := int64(0)
	if err := server.Admin().CoreV1().Pods(namespace).Delete(t.Context(), "stubborn", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	history.await("stubborn", "that it is gone", isDeleted)
	until(t, "nothing of the pod is left", func() bool { return !exists(d.podDirectory(pod)) })
	d.stop()
}

// An edited manifest is another pod, with another mirror, after the old one has ended. A
// removed one takes its mirror along.
func TestStaticManifestIsEditedAndRemoved(t *testing.T) {
	server := shared.Server(t)
	d := newDaemon(t, "edited").join(server)
	history := follow(t, server.Admin(), metav1.NamespaceDefault)
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	const name = "static-edited"
	first := history.await(name, "that it runs", isReady)

	d.manifest("static.yaml", strings.Replace(staticManifest("static"), `"1"`, `"2"`, 1))
	second := history.await(name, "that the edited one runs", func(event watch.EventType, pod *v1.Pod) bool {
		return pod.UID != first.UID && isReady(event, pod)
	})
	if a, b := first.Annotations["kubernetes.io/config.hash"], second.Annotations["kubernetes.io/config.hash"]; a == b {
		t.Errorf("both mirrors have hash %s, want another one after an edit", a)
	}
	if a, b := first.Status.ContainerStatuses[0].ContainerID, second.Status.ContainerStatuses[0].ContainerID; a == b {
		t.Errorf("both pods have container %s, want another one after an edit", a)
	}

	if err := os.Remove(filepath.Join(d.config.Manifests, "static.yaml")); err != nil {
		t.Fatal(err)
	}
	history.await(name, "that the mirror is gone", func(event watch.EventType, pod *v1.Pod) bool {
		return event == watch.Deleted && pod.UID == second.UID
	})
	until(t, "no pod is left in the runtime", func() bool {
		left, err := os.ReadDir(filepath.Join(d.config.StateDir, "runtime", "pods"))
		return err == nil && len(left) == 0
	})
	d.stop()
}

// What cannot be run waits with the name of the field, as with a kubelet that cannot pull an image.
func TestPodThatTheRuntimeCannotRun_Waits(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "refuses").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	pod := shellPod(namespace, "foreign", "refuses", "true")
	pod.Spec.Containers[0].Image = "example.com/web:1"
	server.CreatePod(t, pod)
	waiting := history.await("foreign", "that it waits", func(_ watch.EventType, pod *v1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && stateWord(pod.Status.ContainerStatuses[0].State) == "waiting(ErrImagePull)"
	})
	if message := waiting.Status.ContainerStatuses[0].State.Waiting.Message; waiting.Status.Phase != v1.PodPending || !strings.Contains(message, "spec.containers[0].image") {
		t.Errorf("got phase %s and message %q, want Pending and the field named", waiting.Status.Phase, message)
	}
	d.stop()
}
