package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/run"
)

// transcript is what the demo prints, with a way to wait for it.
type transcript struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
	more chan struct{} // capacity 1: one sign is enough for all that was written
}

func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await waits for a line with all of the words.
func (w *transcript) await(t *testing.T, words ...string) {
	t.Helper()
	late := time.After(10 * time.Minute)
	for {
		for line := range strings.Lines(w.String()) {
			found := 0
			for _, word := range words {
				if strings.Contains(line, word) {
					found++
				}
			}
			if found == len(words) {
				return
			}
		}
		select {
		case <-w.more:
		case <-late:
			t.Fatalf("no line with %q in\n%s", words, w.String())
		}
	}
}

func TestStatusdThatDoesNotStartIsExplained(t *testing.T) {
	out := &transcript{more: make(chan struct{}, 1)}
	d := &demo{out: out, state: t.TempDir(), statusd: "/bin/false"}
	config := run.Default()
	config.StateDir = filepath.Join(d.state, "statusd")
	daemon, err := d.startStatusd(config)
	if err != nil {
		t.Fatal(err)
	}
	err = d.show(t.Context(), daemon, nil, func(context.Context) ([]v1.Pod, error) { return nil, nil })
	if err == nil || !strings.Contains(err.Error(), "statusd ended by itself (exit status 1)") {
		t.Errorf("got %v, want that statusd ended by itself", err)
	}
}

func TestStatusWords_EqualKubectls(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	yes := true
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	waiting := func(reason string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
	ended := func(code int32, reason string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
	}
	pod := func(phase v1.PodPhase, main v1.ContainerState, inits ...v1.ContainerStatus) *v1.Pod {
		p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}}}}
		for _, c := range inits {
			spec := v1.Container{Name: c.Name}
			if c.Name == "sidecar" {
				spec.RestartPolicy = &always
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, spec)
		}
		p.Status = v1.PodStatus{Phase: phase, InitContainerStatuses: inits,
			ContainerStatuses: []v1.ContainerStatus{{Name: "main", State: main, Ready: main.Running != nil}}}
		return p
	}
	sidecar := v1.ContainerStatus{Name: "sidecar", State: running, Started: &yes, Ready: true, RestartCount: 2}
	cases := []struct {
		pod  *v1.Pod
		want string
	}{
		{&v1.Pod{Spec: v1.PodSpec{Containers: make([]v1.Container, 1)}}, "0/1 Pending 0"},
		{pod(v1.PodPending, waiting("ContainerCreating")), "0/1 ContainerCreating 0"},
		{pod(v1.PodRunning, running), "1/1 Running 0"},
		{pod(v1.PodRunning, waiting("CrashLoopBackOff")), "0/1 CrashLoopBackOff 0"},
		{pod(v1.PodSucceeded, ended(0, "Completed")), "0/1 Completed 0"},
		{pod(v1.PodPending, waiting("PodInitializing"), v1.ContainerStatus{Name: "init", State: running}), "0/1 Init:0/1 0"},
		{pod(v1.PodPending, waiting("PodInitializing"), v1.ContainerStatus{Name: "init", State: ended(1, "Error")}), "0/1 Init:Error 0"},
		{pod(v1.PodPending, waiting("PodInitializing"), v1.ContainerStatus{Name: "init", State: waiting("CrashLoopBackOff")}), "0/1 Init:CrashLoopBackOff 0"},
		{pod(v1.PodRunning, running, v1.ContainerStatus{Name: "init", State: ended(0, "Completed")}, sidecar), "2/2 Running 2"},
	}
	for _, c := range cases {
		ready, word, restarts := describe(c.pod)
		if got := ready + " " + word + " " + restarts; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Pods with another user than statusd's have their volumes below the state directory.
func TestOtherUsersCanPassThroughTheState(t *testing.T) {
	for _, c := range []struct {
		story  string
		before func(dir string) error
	}{
		{"a new directory", func(string) error { return nil }},
		{"one that the control plane has made", func(dir string) error { return os.Mkdir(dir, 0o700) }},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		if err := c.before(dir); err != nil {
			t.Fatal(err)
		}
		if err := (&demo{state: dir}).openState(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			t.Errorf("%s: its mode is %v, which lets no other user pass", c.story, info.Mode())
		}
	}
}
