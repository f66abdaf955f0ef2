package function_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/function"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "img"}}},
	}
}

func newRuntime(t *testing.T, run func(context.Context, function.Call) error) *function.Runtime {
	t.Helper()
	rt, err := function.New(function.Options{Run: run})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func start(t *testing.T, rt *function.Runtime, attempt int) (id string) {
	t.Helper()
	pod := newPod()
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id, err := rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], attempt)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newest(t *testing.T, rt *function.Runtime) runtime.Container {
	t.Helper()
	pod, err := rt.Pod(t.Context(), "uid")
	if err != nil || len(pod.Containers) == 0 {
		t.Fatalf("got %+v, %v; want a container", pod, err)
	}
	return pod.Containers[0]
}

func TestHowACallReturnsIsHowTheContainerEnds(t *testing.T) {
	for _, c := range []struct {
		story       string
		err         error
		wantCode    int32
		wantReason  string
		wantMessage string
	}{
		{"nothing", nil, 0, runtime.ReasonCompleted, ""},
		{"an error", errors.New("tired"), 1, runtime.ReasonError, "tired"},
		{"an exit code", fmt.Errorf("job 7: %w", &function.ExitError{Code: 42, Message: "out of paper"}), 42, runtime.ReasonError, "out of paper"},
		{"a long message", errors.New(strings.Repeat("x", 10000)), 1, runtime.ReasonError, strings.Repeat("x", runtime.MaxMessageBytes)},
	} {
		synctest.Test(t, func(t *testing.T) {
			rt := newRuntime(t, func(context.Context, function.Call) error { time.Sleep(time.Second); return c.err })
			id := start(t, rt, 0)
			if got := newest(t, rt); got.State != runtime.Running || got.ID != id || got.Image != "img" {
				t.Errorf("%s: got %+v, want it running", c.story, got)
			}
			time.Sleep(2 * time.Second)
			got := newest(t, rt)
			if got.State != runtime.Exited || got.ExitCode != c.wantCode || got.Reason != c.wantReason || got.Message != c.wantMessage || got.FinishedAt.Sub(got.StartedAt) != time.Second {
				t.Errorf("%s: got %+v, want exit code %d, reason %s, message %.20q", c.story, got, c.wantCode, c.wantReason, c.wantMessage)
			}
		})
	}
}

// A function that does not heed its context runs, and is listed as running, until it returns.
func TestAStoppedFunctionRunsUntilItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, func(ctx context.Context, _ function.Call) error {
			<-ctx.Done()
			time.Sleep(time.Hour)
			return ctx.Err()
		})
		id := start(t, rt, 0)
		if err := rt.StopContainer(t.Context(), id, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := newest(t, rt); got.State != runtime.Running {
			t.Errorf("got %+v, want it running: the function has not returned", got)
		}
		if err := rt.RemovePod(t.Context(), "uid"); !errors.Is(err, runtime.ErrContainerRunning) {
			t.Errorf("remove: got %v, want ErrContainerRunning", err)
		}
		time.Sleep(time.Hour)
		if got := newest(t, rt); got.State != runtime.Exited || got.ExitCode != 143 || got.Signal != 15 {
			t.Errorf("got %+v, want exit code 143", got)
		}
		if err := rt.RemovePod(t.Context(), "uid"); err != nil {
			t.Error(err)
		}
		if _, err := rt.Pod(t.Context(), "uid"); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

func TestTwoAttemptsAreKeptWithTheirLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, func(_ context.Context, call function.Call) error {
			fmt.Fprintf(call.Log, "attempt %d\nmore", call.Attempt)
			return nil
		})
		seen := map[string]bool{}
		for attempt := range 4 {
			seen[start(t, rt, attempt)] = true
			synctest.Wait()
		}
		pod, err := rt.Pod(t.Context(), "uid")
		if err != nil || len(seen) != 4 || len(pod.Containers) != 2 || pod.Containers[0].Attempt != 3 || pod.Containers[1].Attempt != 2 {
			t.Fatalf("got %+v, %v; want the attempts 3 and 2, and IDs of their own", pod.Containers, err)
		}
		logs, err := rt.Logs(t.Context(), pod.Containers[1].ID, runtime.LogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(logs); string(text) != "attempt 2\nmore\n" {
			t.Errorf("got %q, want the log of attempt 2", text)
		}
		if _, err := rt.StartContainer(t.Context(), newPod(), &newPod().Spec.Containers[0], 3); err == nil {
			t.Error("an attempt was started twice")
		}
	})
}

func TestCloseEndsAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, func(ctx context.Context, _ function.Call) error { <-ctx.Done(); return ctx.Err() })
		start(t, rt, 0)
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		if got := newest(t, rt); got.State != runtime.Exited {
			t.Errorf("got %+v, want exited", got)
		}
	})
}

// What the function cannot honor is refused by name; what it says that it honors is not.
func TestCheckRefusesWhatAFunctionCannotHonor(t *testing.T) {
	pod := newPod()
	pod.Spec.SecurityContext = &v1.PodSecurityContext{} // as the API server defaults it
	pod.Spec.NodeName, pod.Spec.ServiceAccountName, pod.Spec.RestartPolicy = "n", "default", v1.RestartPolicyAlways
	c := &pod.Spec.Containers[0]
	c.Command, c.Env = []string{"a"}, []v1.EnvVar{{Name: "A", Value: "b"}}
	c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	c.Ports = []v1.ContainerPort{{ContainerPort: 80}}
	rt := newRuntime(t, func(context.Context, function.Call) error { return nil })
	if found := rt.Check(pod); len(found) > 0 {
		t.Errorf("an ordinary pod: got %q, want none", found)
	}
	pod.Spec.HostNetwork, pod.Spec.Volumes = true, []v1.Volume{{Name: "data"}}
	c.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	c.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
	c.Ports[0].HostPort = 80
	c.Env[0].ValueFrom = &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	c.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{}}}
	want := []string{
		"spec.hostNetwork", "spec.volumes", "spec.containers[0].env[0].valueFrom", "spec.containers[0].livenessProbe.exec",
		"spec.containers[0].ports[0].hostPort", "spec.containers[0].resources.limits", "spec.containers[0].volumeMounts",
	}
	if got := refused(rt, pod); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	able, err := function.New(function.Options{
		Run:    func(context.Context, function.Call) error { return nil },
		Honors: []string{"spec.volumes", "spec.containers.volumeMounts", "spec.containers.livenessProbe"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := refused(able, pod); slices.Contains(got, "spec.volumes") || !slices.Contains(got, "spec.containers[0].livenessProbe.exec") {
		t.Errorf("got %q, want volumes honored, and exec refused all the same", got)
	}
}

func refused(rt *function.Runtime, pod *v1.Pod) (all []string) {
	for _, u := range rt.Check(pod) {
		all = append(all, u.Field)
	}
	return all
}
