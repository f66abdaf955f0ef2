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
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/function"
	"github.com/statusd/statusd/runtime/runtimetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The part of the suite that needs no shell.
func TestConformance(t *testing.T) {
	runtimetest.Run(t, runtimetest.Config{
		Ephemeral: true,
		Open: func(t *testing.T, _ string) (runtime.Runtime, func()) {
			rt := newRuntime(t, func(ctx context.Context, call function.Call) error {
				switch runtimetest.Kind(call.Container.Image) {
				case runtimetest.Runs:
					<-ctx.Done()
					return ctx.Err()
				case runtimetest.Fails:
					return &function.ExitError{Code: 3}
				}
				return nil
			})
			return rt, func() { rt.Close() }
		},
		Script: func(kind runtimetest.Kind) (v1.Container, bool) {
			return v1.Container{Image: string(kind)}, slices.Contains([]runtimetest.Kind{runtimetest.Succeeds, runtimetest.Fails, runtimetest.Runs}, kind)
		},
	})
}

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

// ordinaryPod is what an API server makes of a Deployment as people write it.
func ordinaryPod() *v1.Pod {
	pod := newPod()
	pod.Spec.NodeName, pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, pod.Spec.RestartPolicy = "n", "default", "default", v1.RestartPolicyAlways
	pod.Spec.DNSPolicy, pod.Spec.SchedulerName, pod.Spec.EnableServiceLinks = v1.DNSClusterFirst, "default-scheduler", new(true)
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Volumes = []v1.Volume{{Name: "kube-api-access-x7z2b", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}}, {ConfigMap: &v1.ConfigMapProjection{}}, {DownwardAPI: &v1.DownwardAPIProjection{}},
	}}}}}
	c := &pod.Spec.Containers[0]
	c.Command, c.Env = []string{"a"}, []v1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	c.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}}
	c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	c.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
	c.Ports = []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolTCP}}
	c.ReadinessProbe = &v1.Probe{PeriodSeconds: 10, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80), Scheme: v1.URISchemeHTTP}}}
	c.SecurityContext = &v1.SecurityContext{Privileged: new(false), AllowPrivilegeEscalation: new(false), Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}}
	c.VolumeMounts = []v1.VolumeMount{{Name: "kube-api-access-x7z2b", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
	c.TerminationMessagePath, c.TerminationMessagePolicy = v1.TerminationMessagePathDefault, v1.TerminationMessageReadFile
	return pod
}

// What the function cannot honor is refused by name and kind; what it honors is not.
func TestCheckRefusesWhatAFunctionCannotHonor(t *testing.T) {
	run := func(context.Context, function.Call) error { return nil }
	rt := newRuntime(t, run)
	if found := rt.Check(ordinaryPod()); len(found) > 0 {
		t.Errorf("an ordinary pod: got %q, want none", found)
	}
	pod := ordinaryPod()
	pod.Spec.HostNetwork = true
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
		v1.Volume{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{Secret: &v1.SecretProjection{}}}}}},
		v1.Volume{Name: "kube-api-access-mine", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "mine"}}})
	c := &pod.Spec.Containers[0]
	c.Ports[0].HostPort = 80
	c.SecurityContext.Privileged = new(true)
	c.SecurityContext.Capabilities.Add = []v1.Capability{"NET_ADMIN"}
	c.Resources.Limits["example.com/gpu"] = resource.MustParse("1")
	c.LivenessProbe = &v1.Probe{PeriodSeconds: 10, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}}
	want := []string{
		"spec.containers[0].livenessProbe.exec", "spec.containers[0].ports[0].hostPort", "spec.containers[0].resources.limits.example.com/gpu",
		"spec.containers[0].securityContext.capabilities.add", "spec.containers[0].securityContext.privileged",
		"spec.hostNetwork", "spec.volumes[2].projected", "spec.volumes[3].secret",
	}
	able, err := function.New(function.Options{Run: run, Honors: []string{"spec.volumes.emptyDir", "spec.containers.livenessProbe"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := refused(able, pod); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := refused(rt, pod); !slices.Contains(got, "spec.volumes[1].emptyDir") {
		t.Errorf("got %q, want emptyDir among them: it is not honored by default", got)
	}
	for _, u := range able.Check(pod) {
		if container := strings.HasPrefix(u.Field, "spec.containers"); container != (u.Container == "main") {
			t.Errorf("%s: got container %q", u.Field, u.Container)
		}
	}
}

func refused(rt *function.Runtime, pod *v1.Pod) (all []string) {
	for _, u := range rt.Check(pod) {
		all = append(all, u.Field)
	}
	return all
}
