package runtimefake_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name + "-uid")},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
	}
}

// start starts a pod with one container and fails the test if it cannot.
func start(t *testing.T, rt *runtimefake.Runtime, pod *v1.Pod) string {
	t.Helper()
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Fatalf("start pod: %v", err)
	}
	id, err := rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		t.Fatalf("start container: %v", err)
	}
	return id
}

func only(t *testing.T, rt *runtimefake.Runtime, pod *v1.Pod) runtime.Container {
	t.Helper()
	p, err := rt.Pod(t.Context(), pod.UID)
	if err != nil || len(p.Containers) != 1 {
		t.Fatalf("pod: %+v, %v; want one container", p, err)
	}
	return p.Containers[0]
}

func TestAContainerLivesAsScripted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, pod := runtimefake.New(), newPod("web")
		rt.Script(func(*v1.Pod, *v1.Container, int) runtimefake.Behavior {
			return runtimefake.Behavior{Lives: time.Minute, ExitCode: 3, Message: "tired"}
		})
		begin := time.Now()
		id := start(t, rt, pod)
		if c := only(t, rt, pod); c.State != runtime.Running || c.ID != id || !c.StartedAt.Equal(begin) {
			t.Errorf("after the start: got %+v, want it running since %s", c, begin)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		c := only(t, rt, pod)
		if c.State != runtime.Exited || c.ExitCode != 3 || c.Reason != runtime.ReasonError || c.Message != "tired" || c.FinishedAt.Sub(begin) != time.Minute {
			t.Errorf("after a minute: got %+v, want exit 3 at %s", c, begin.Add(time.Minute))
		}
	})
}

func TestStopWithGrace(t *testing.T) {
	for _, c := range []struct {
		story      string
		stopsAfter time.Duration
		graces     []time.Duration // asked for one second apart
		wantAfter  time.Duration
		wantCode   int32
	}{
		{"obeys at once", 0, []time.Duration{30 * time.Second}, 0, 143},
		{"no grace kills", 0, []time.Duration{0}, 0, 137},
		{"needs less than its grace", 5 * time.Second, []time.Duration{30 * time.Second}, 5 * time.Second, 143},
		{"needs more than its grace", time.Minute, []time.Duration{30 * time.Second}, 30 * time.Second, 137},
		{"grace is shortened", time.Minute, []time.Duration{30 * time.Second, 2 * time.Second}, 3 * time.Second, 137},
		{"grace is not extended", time.Minute, []time.Duration{5 * time.Second, 50 * time.Second}, 5 * time.Second, 137},
	} {
		t.Run(c.story, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt, pod := runtimefake.New(), newPod("web")
				rt.Script(func(*v1.Pod, *v1.Container, int) runtimefake.Behavior {
					return runtimefake.Behavior{StopsAfter: c.stopsAfter}
				})
				id := start(t, rt, pod)
				begin := time.Now()
				for i, grace := range c.graces {
					if i > 0 {
						time.Sleep(time.Second)
					}
					if err := rt.StopContainer(t.Context(), id, grace); err != nil {
						t.Fatalf("stop: %v", err)
					}
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				got := only(t, rt, pod)
				if after := got.FinishedAt.Sub(begin); got.State != runtime.Exited || after != c.wantAfter || got.ExitCode != c.wantCode {
					t.Errorf("got %s with %d after %s, want Exited with %d after %s", got.State, got.ExitCode, after, c.wantCode, c.wantAfter)
				}
			})
		})
	}
}

func TestErrorsAreInjectedOncePerCall(t *testing.T) {
	rt, pod := runtimefake.New(), newPod("web")
	full := errors.New("disk full")
	rt.Fail("StartPod", full)
	if err := rt.StartPod(t.Context(), pod); !errors.Is(err, full) {
		t.Errorf("first call: got %v, want %v", err, full)
	}
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Errorf("second call: got %v, want none", err)
	}
	if want := []string{"StartPod web", "StartPod web"}; !slices.Equal(rt.Calls(), want) {
		t.Errorf("calls: got %q, want %q", rt.Calls(), want)
	}
}

func TestAListedStartErrorIsAnExitedContainer(t *testing.T) {
	rt, pod := runtimefake.New(), newPod("web")
	cause := &runtime.StartError{Reason: runtime.WaitingRunError, Err: errors.New("no such file")}
	rt.Script(func(*v1.Pod, *v1.Container, int) runtimefake.Behavior {
		return runtimefake.Behavior{StartError: cause, Listed: true}
	})
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id, err := rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	if !errors.Is(err, cause) || id == "" {
		t.Fatalf("start: got %q, %v; want an ID and %v", id, err, cause)
	}
	if c := only(t, rt, pod); c.State != runtime.Exited || c.Reason != runtime.ReasonStartError || c.ExitCode != runtime.ExitCodeStartError {
		t.Errorf("got %+v, want exited with StartError 128", c)
	}
}

func TestWatchHearsStartExitAndRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rt, pod := runtimefake.New(), newPod("web")
		watch := rt.Watch(ctx)
		id := start(t, rt, pod)
		<-watch
		rt.Exit(id, runtimefake.Exit{})
		<-watch
		if c := only(t, rt, pod); c.Reason != runtime.ReasonCompleted {
			t.Errorf("after the exit: got %+v, want Completed", c)
		}
		if err := rt.RemovePod(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
		<-watch
		if _, err := rt.Pod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("after the removal: got %v, want ErrNotFound", err)
		}
	})
}

func TestExecAndLogsAreScripted(t *testing.T) {
	rt, pod := runtimefake.New(), newPod("web")
	id := start(t, rt, pod)
	rt.ExecWith(func(_ context.Context, c runtime.Container, command []string) (runtime.ExecResult, error) {
		return runtime.ExecResult{ExitCode: len(command), Output: []byte(c.Name)}, nil
	})
	if got, err := rt.Exec(t.Context(), id, []string{"a", "b"}); err != nil || got.ExitCode != 2 || string(got.Output) != "main" {
		t.Errorf("exec: got %+v, %v; want 2 and main", got, err)
	}
	rt.WriteLog(id, "one\ntwo\nthree\n")
	logs, err := rt.Logs(t.Context(), id, runtime.LogOptions{Tail: new(int64(2))})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(logs); string(got) != "two\nthree\n" {
		t.Errorf("logs: got %q, want the last two lines", got)
	}
	rt.Exit(id, runtimefake.Exit{Code: 1})
	if _, err := rt.Exec(t.Context(), id, []string{"a"}); !errors.Is(err, runtime.ErrNotRunning) {
		t.Errorf("exec after the exit: got %v, want ErrNotRunning", err)
	}
}

func TestARunningPodIsNotRemovedAndNotStartedTwice(t *testing.T) {
	rt, pod := runtimefake.New(), newPod("web")
	start(t, rt, pod)
	if err := rt.RemovePod(t.Context(), pod.UID); !errors.Is(err, runtime.ErrContainerRunning) {
		t.Errorf("remove: got %v, want ErrContainerRunning", err)
	}
	if _, err := rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); !errors.Is(err, runtime.ErrContainerRunning) {
		t.Errorf("second start: got %v, want ErrContainerRunning", err)
	}
}

func TestARebootEndsAllAndBeginsANewPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, pod := runtimefake.New(), newPod("a")
		start(t, rt, pod)
		time.Sleep(time.Minute)
		rt.Reboot()
		if c := only(t, rt, pod); c.State != runtime.Exited || c.Reason != runtime.ReasonUnknown || !c.EarlierPlace {
			t.Errorf("got %+v, want ContainerStatusUnknown in an earlier place", c)
		}
		if p, err := rt.Pod(t.Context(), pod.UID); err != nil || p.PlaceSince.Sub(p.CreatedAt) != time.Minute {
			t.Errorf("got %+v, %v; want a place that is a minute younger than the pod", p, err)
		}
	})
}
