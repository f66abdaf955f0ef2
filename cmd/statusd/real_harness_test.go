//go:build real

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

// TestMain lets the test binary be statusd: the tests start it with the arguments of
// statusd, and it starts itself as shim and as example server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		os.Exit(0)
	}
	shared.Main(m)
}

// join makes the daemon a node of a cluster.
func (d *daemon) join(server *controlplanetest.Server) *daemon {
	d.t.Helper()
	kubeconfig, err := server.Process.NodeKubeconfig(d.config.NodeName)
	if err != nil {
		d.t.Fatal(err)
	}
	d.config.Kubeconfig = kubeconfig
	d.config.Server = agent.ServerConfig{BindAddress: "127.0.0.1:0", ClientCAFile: filepath.Join(server.Process.DataDir(), "pki", "ca.crt")}
	return d
}

// history is everything that a watch of a namespace has shown.
type history struct {
	t       *testing.T
	watch   watch.Interface
	mu      sync.Mutex // guards what follows
	events  []watch.Event
	changed chan struct{} // closed and replaced at each event
}

// follow watches the pods of a namespace from now on.
func follow(t *testing.T, client kubernetes.Interface, namespace string) *history {
	t.Helper()
	w, err := client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := &history{t: t, watch: w, changed: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			h.mu.Lock()
			h.events = append(h.events, event)
			close(h.changed)
			h.changed = make(chan struct{})
			h.mu.Unlock()
		}
	}()
	t.Cleanup(func() { w.Stop(); <-done })
	return h
}

// of are the events of a pod so far, and a channel that is closed when there are more.
func (h *history) of(name string) (events []watch.Event, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		if pod, ok := event.Object.(*v1.Pod); ok && pod.Name == name {
			events = append(events, event)
		}
	}
	return events, h.changed
}

// await waits until the newest event of a pod is as wanted.
func (h *history) await(name, what string, wanted func(watch.EventType, *v1.Pod) bool) *v1.Pod {
	h.t.Helper()
	late := time.After(patience)
	for {
		events, more := h.of(name)
		if n := len(events); n > 0 && wanted(events[n-1].Type, events[n-1].Object.(*v1.Pod)) {
			return events[n-1].Object.(*v1.Pod)
		}
		select {
		case <-more:
		case <-late:
			h.t.Fatalf("pod %s: waited in vain: %s\n%s", name, what, story(events))
		}
	}
}

// story is a history for a person.
func story(events []watch.Event) string {
	var lines []string
	for _, event := range events {
		pod := event.Object.(*v1.Pod)
		var containers []string
		for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			containers = append(containers, fmt.Sprintf("%s ready=%t restarts=%d %s", c.Name, c.Ready, c.RestartCount, stateWord(c.State)))
		}
		lines = append(lines, fmt.Sprintf("  %s %s %s ready=%s %v", event.Type, pod.Name, pod.Status.Phase, condition(pod, v1.PodReady), containers))
	}
	return strings.Join(lines, "\n")
}

func stateWord(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("terminated(%d %s)", s.Terminated.ExitCode, s.Terminated.Reason)
	case s.Waiting != nil:
		return "waiting(" + s.Waiting.Reason + ")"
	}
	return "none"
}

func isReady(_ watch.EventType, pod *v1.Pod) bool { return condition(pod, v1.PodReady) == "True" }

func isDeleted(event watch.EventType, _ *v1.Pod) bool { return event == watch.Deleted }

// shellPod is a pod with one container that runs a script.
func shellPod(namespace, name, node, script string) *v1.Pod {
	pod := controlplanetest.Pod(namespace, name, node)
	pod.Spec.Containers[0].Image = "host"
	pod.Spec.Containers[0].Command = []string{"/bin/sh", "-c", script}
	return pod
}
