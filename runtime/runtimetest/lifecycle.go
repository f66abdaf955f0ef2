package runtimetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

func testExitBySignal(t *testing.T, f *fixture) {
	c := f.run(t, f.newPod("signal", "kill -KILL $$"))
	if c.ExitCode != 137 || c.Signal != int32(syscall.SIGKILL) || c.Reason != runtime.ReasonError {
		t.Errorf("killed by itself: got %+v, want 137 by signal 9", c)
	}
}

func testRunningContainerIsListed(t *testing.T, f *fixture) {
	pod := f.newPod("web", "say ready; hear")
	id := f.start(t, pod)[0]
	scheme, _, _ := strings.Cut(f.rt.Version(), "://")
	if !strings.HasPrefix(id, scheme+"://") {
		t.Errorf("ID %q does not start with the scheme of version %q", id, f.rt.Version())
	}
	f.expect(t, "ready")
	pods, err := f.rt.Pods(t.Context())
	if err != nil || len(pods) != 1 {
		t.Fatalf("got %v, %v; want the one pod", pods, err)
	}
	got := pods[0]
	if got.Manifest.Name != "web" || got.Manifest.UID != pod.UID || len(got.Manifest.Spec.Containers) != 1 {
		t.Errorf("manifest: got %v, want what was started", got.Manifest)
	}
	if len(got.IPs) == 0 || got.CreatedAt.IsZero() {
		t.Errorf("got addresses %v, created %s; want both", got.IPs, got.CreatedAt)
	}
	c := f.container(t, pod, id)
	if c.Name != "c0" || c.Attempt != 0 || c.State != runtime.Running || c.StartedAt.IsZero() || !c.FinishedAt.IsZero() {
		t.Errorf("got %+v, want c0 running", c)
	}
	f.tell(t)
	f.awaitExit(t, pod, id)
}

// expectStartError starts a pod that must not start and checks how that is reported.
func (f *fixture) expectStartError(t *testing.T, pod *v1.Pod) {
	t.Helper()
	f.startPod(t, pod)
	id, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	start, ok := errors.AsType[*runtime.StartError](err)
	if !ok || start.Error() == "" {
		t.Fatalf("got %q, %v; want a StartError that says why", id, err)
	}
	if id == "" {
		return // not listed, which is as good
	}
	c := f.awaitExit(t, pod, id)
	if c.Reason != runtime.ReasonStartError || c.ExitCode != runtime.ExitCodeStartError || c.Message == "" || !c.StartedAt.IsZero() {
		t.Errorf("got %+v, want StartError 128 with a message and no start time", c)
	}
	if _, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); err == nil {
		t.Error("the next attempt started all the same")
	}
}

func testCommandNotFound(t *testing.T, f *fixture) {
	pod := f.newPod("lost", "")
	pod.Spec.Containers[0].Command = []string{"no-such-command-anywhere"}
	f.expectStartError(t, pod)
}

func testCommandNotExecutable(t *testing.T, f *fixture) {
	pod := f.newPod("passwd", "")
	pod.Spec.Containers[0].Command = []string{"/etc/passwd"}
	f.expectStartError(t, pod)
}

func testWorkingDirMissing(t *testing.T, f *fixture) {
	pod := f.newPod("nowhere", "exit 0")
	pod.Spec.Containers[0].WorkingDir = "/etc/passwd/no/such/directory"
	f.expectStartError(t, pod)
}

func testManyAtOnce(t *testing.T, f *fixture) {
	const n = 12
	pods, ids := make([]*v1.Pod, n), make([]string, n)
	failed := make(chan error, n)
	for i := range n {
		pods[i] = f.newPod(fmt.Sprint("many-", i), fmt.Sprintf("hear; exit %d", 255-i))
		go func() {
			err := f.rt.StartPod(t.Context(), pods[i])
			if err == nil {
				ids[i], err = f.rt.StartContainer(t.Context(), pods[i], &pods[i].Spec.Containers[0], 0)
			}
			failed <- err
		}()
	}
	for range n {
		if err := <-failed; err != nil {
			t.Fatalf("start: %v", err)
		}
	}
	for range n {
		f.tell(t)
	}
	for i := range n {
		if c := f.awaitExit(t, pods[i], ids[i]); c.ExitCode != int32(255-i) || c.Message != "" {
			t.Errorf("pod %d: got %+v, want exit code %d and no message", i, c, 255-i)
		}
	}
}

// testImage: what a container was started from is listed, and the same image has the same ID.
func testImage(t *testing.T, f *fixture) {
	pod := f.newPod("image", "exit 0")
	first := f.run(t, pod)
	id, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	second := f.awaitExit(t, pod, id)
	for _, c := range []runtime.Container{first, second} {
		if c.Image != "" && c.Image != pod.Spec.Containers[0].Image || c.ImageID != first.ImageID {
			t.Errorf("got image %q with ID %q, want %q with ID %q", c.Image, c.ImageID, pod.Spec.Containers[0].Image, first.ImageID)
		}
	}
}

// testMissingImage: a container whose image cannot be had does not start, and says why.
func testMissingImage(t *testing.T, f *fixture) {
	if f.config.MissingImage == "" {
		return // a runtime without images
	}
	pod := f.newPod("missing", "exit 0")
	pod.Spec.Containers[0].Image = f.config.MissingImage
	changes := f.rt.Watch(t.Context())
	f.startPod(t, pod)
	id, err := f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	for errors.Is(err, runtime.ErrPulling) {
		<-changes
		id, err = f.rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	}
	if err != nil {
		if failed, ok := errors.AsType[*runtime.StartError](err); !ok || !isPullReason(failed.Reason) {
			t.Errorf("got %v, want a StartError with a reason of the image", err)
		}
		return
	}
	for {
		c := f.container(t, pod, id)
		if c.State == runtime.Created && isPullReason(c.Reason) {
			break
		}
		if c.State != runtime.Created {
			t.Fatalf("got %+v, want it waiting for its image", c)
		}
		<-changes
	}
	f.stop(t, id, 0)
	f.awaitExit(t, pod, id)
}

func isPullReason(reason string) bool {
	return slices.Contains([]string{
		runtime.WaitingImagePull, runtime.WaitingImagePullBackOff, runtime.WaitingImageNeverPull, runtime.WaitingInvalidImageName,
	}, reason)
}
