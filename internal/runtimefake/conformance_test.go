package runtimefake_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/runtimetest"
)

// behaviors are those of containers by their image.
var behaviors = map[runtimetest.Kind]runtimefake.Behavior{
	runtimetest.Succeeds:     {Lives: time.Millisecond},
	runtimetest.Fails:        {Lives: time.Millisecond, ExitCode: 3},
	runtimetest.Runs:         {},
	runtimetest.FailsToStart: {StartError: &runtime.StartError{Reason: runtime.WaitingImagePull, Err: errors.New("no such image")}},
	runtimetest.StartsLater:  {Waiting: &runtimefake.Waiting{For: 50 * time.Millisecond}},
	runtimetest.NeverStarts:  {Waiting: &runtimefake.Waiting{}},
}

// conform runs the suite on a fake that stands for a system elsewhere: its containers go on while the agent is away. Reconnect is what
// the agent does when it is back.
func conform(t *testing.T, reconnect func(*runtimefake.Runtime) runtime.Runtime) {
	systems := map[string]*runtimefake.Runtime{}
	runtimetest.Run(t, runtimetest.Config{
		Open: func(_ *testing.T, dir string) (runtime.Runtime, func()) {
			if rt, known := systems[dir]; known {
				return reconnect(rt), func() {}
			}
			systems[dir] = runtimefake.New()
			systems[dir].Script(func(_ *v1.Pod, container *v1.Container, _ int) runtimefake.Behavior {
				return behaviors[runtimetest.Kind(container.Image)]
			})
			return systems[dir], func() {}
		},
		Script: func(kind runtimetest.Kind) (v1.Container, bool) {
			_, ok := behaviors[kind]
			return v1.Container{Image: string(kind)}, ok
		},
	})
}

func TestConformance(t *testing.T) {
	conform(t, func(rt *runtimefake.Runtime) runtime.Runtime { return rt })
}

// forgetful is a runtime that loses containers over a restart that do not run yet.
type forgetful struct{ *runtimefake.Runtime }

func (r forgetful) Pod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	pod, err := r.Runtime.Pod(ctx, uid)
	pod.Containers = slices.DeleteFunc(pod.Containers, func(c runtime.Container) bool { return c.State == runtime.Created })
	return pod, err
}

// The suite fails for a runtime that loses what is created: the test runs itself on such a one.
func TestConformance_LostCreatedContainer_Fails(t *testing.T) {
	const broken = "RUNTIMEFAKE_BROKEN"
	if os.Getenv(broken) != "" {
		conform(t, func(rt *runtimefake.Runtime) runtime.Runtime { return forgetful{rt} })
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), broken+"=1")
	out, err := command.CombinedOutput()
	for _, test := range []string{"RestartWhileCreated", "StopOfCreatedAfterRestart"} {
		if err == nil || !strings.Contains(string(out), "--- FAIL: "+t.Name()+"/"+test) {
			t.Errorf("test %s passed for a runtime that loses created containers:\n%s", test, out)
		}
	}
	for _, test := range []string{"CreatedContainerRuns", "RestartWhileRunning", "ExitCode"} {
		if !strings.Contains(string(out), "--- PASS: "+t.Name()+"/"+test) {
			t.Errorf("test %s failed:\n%s", test, out)
		}
	}
}
