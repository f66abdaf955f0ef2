package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/test/orphans"
)

func scriptPod(uid types.UID, script string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: string(uid), Namespace: "default", UID: uid},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "main", Image: Image, Command: []string{"/bin/sh", "-c", strings.ReplaceAll(script, "$$", "$$$$")},
		}}},
	}
}

// host is a runtime with its pipe to hear from containers.
type host struct {
	*Runtime
	dir     string
	options Options // beside the directory
	close   func()
	watch   <-chan types.UID
	up      *bufio.Reader
	pipe    string // containers write lines to it
}

func newHost(t *testing.T) *host {
	dir := t.TempDir()
	h := &host{dir: filepath.Join(dir, "state"), pipe: filepath.Join(dir, "up")}
	orphans.EndBelow(t, h.dir)
	if err := syscall.Mkfifo(h.pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	// A pipe that another process has opened for writing too never ends for a reader.
	up, err := os.OpenFile(h.pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err == nil {
		err = errors.Join(up.SetReadDeadline(time.Now().Add(10*time.Minute)), os.Chmod(h.pipe, 0o666))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close() })
	h.up = bufio.NewReader(up)
	t.Cleanup(func() {
		if h.close == nil {
			h.open(t) // the test failed between two agents
		}
		h.leaveNothing(t)
	})
	return h
}

// open opens the runtime; what is in it is removed at the end of the test.
func (h *host) open(t *testing.T) {
	t.Helper()
	h.options.Dir = h.dir
	rt, closeRuntime := open(t, h.options)
	ctx, cancel := context.WithCancel(context.Background())
	h.Runtime, h.watch = rt, rt.Watch(ctx)
	h.close = func() {
		cancel()
		for range h.watch {
		}
		closeRuntime()
		h.close = nil
	}
}

// leaveNothing stops and removes all pods and closes the runtime.
func (h *host) leaveNothing(t *testing.T) {
	t.Helper()
	pods, err := h.Pods(context.Background())
	if err != nil {
		t.Error(err)
	}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if err := h.StopContainer(context.Background(), c.ID, 0); err != nil {
				t.Error(err)
			}
		}
		h.awaitAllExited(t, pod.Manifest.UID)
		if err := h.RemovePod(context.Background(), pod.Manifest.UID); err != nil {
			t.Error(err)
		}
	}
	h.close()
}

func (h *host) hear(t *testing.T) string {
	t.Helper()
	line, err := h.up.ReadString('\n')
	if err != nil {
		t.Fatalf("no word from the container: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (h *host) hearPID(t *testing.T) proc.ID {
	t.Helper()
	pid, err := strconv.Atoi(h.hear(t))
	if err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(pid)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	return id
}

func (h *host) start(t *testing.T, pod *v1.Pod) string {
	t.Helper()
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatalf("start pod: %v", err)
	}
	id, err := h.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		t.Fatalf("start container: %v", err)
	}
	return id
}

func (h *host) only(t *testing.T, uid types.UID) runtime.Container {
	t.Helper()
	pod, err := h.Pod(context.Background(), uid)
	if err != nil || len(pod.Containers) != 1 {
		t.Fatalf("pod %s: got %+v, %v; want one container", uid, pod.Containers, err)
	}
	return pod.Containers[0]
}

func (h *host) awaitExit(t *testing.T, uid types.UID) runtime.Container {
	t.Helper()
	timeout := time.After(10 * time.Minute)
	for {
		if c := h.only(t, uid); c.State == runtime.Exited {
			return c
		}
		select {
		case <-h.watch:
		case <-timeout:
			t.Fatalf("pod %s did not end: %+v", uid, h.only(t, uid))
		}
	}
}

// awaitStarted waits until a container has started. A runtime that was opened again may hear of it
// a little later.
func (h *host) awaitStarted(t *testing.T, uid types.UID) runtime.Container {
	t.Helper()
	timeout := time.After(10 * time.Minute)
	for {
		if c := h.only(t, uid); c.State != runtime.Created {
			return c
		}
		select {
		case <-h.watch:
		case <-timeout:
			t.Fatalf("pod %s did not start: %+v", uid, h.only(t, uid))
		}
	}
}

// awaitAllExited waits until no container of the pod runs.
func (h *host) awaitAllExited(t *testing.T, uid types.UID) {
	t.Helper()
	timeout := time.After(10 * time.Minute)
	for {
		pod, err := h.Pod(context.Background(), uid)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(pod.Containers, func(c runtime.Container) bool { return c.State != runtime.Exited }) {
			return
		}
		select {
		case <-h.watch:
		case <-timeout:
			t.Fatalf("pod %s did not end: %+v", uid, pod.Containers)
		}
	}
}

// shimOf is the shim of a container as the records say.
func (h *host) shimOf(t *testing.T, uid types.UID, id string) proc.ID {
	t.Helper()
	var shim proc.ID
	if err := record.Read(podDir(filepath.Join(h.dir, "pods", string(uid))).container(id).Shim(), &shim); err != nil {
		t.Fatal(err)
	}
	return shim
}

func kill(t *testing.T, id proc.ID, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(id.PID, signal); err != nil {
		t.Fatalf("signal %d to %d: %v", signal, id.PID, err)
	}
}

// expectEnded is for a process that must be dead already; what may take its time is that it is
// reaped.
func expectEnded(t *testing.T, what string, id proc.ID) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id.PID))
	if err != nil {
		return
	}
	again, err := proc.Identify(id.PID)
	dead := strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ") // the latter while it is reaped
	if err != nil || again != id || dead {
		return
	}
	t.Errorf("%s still runs: %s", what, stat)
}
