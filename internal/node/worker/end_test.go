package worker_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// stubborn containers end only when they are killed.
var stubborn = runtimefake.Behavior{StopsAfter: time.Hour}

// ended is how long after since the container ended, or -1.
func (n *node) ended(pod *v1.Pod, name string, since time.Time) time.Duration {
	c := n.newest(pod, name)
	if c.State != runtime.Exited {
		return -1
	}
	return c.FinishedAt.Sub(since)
}

func TestADeletedPodEndsWithinItsGrace(t *testing.T) {
	for _, c := range []struct {
		story    string
		behavior runtimefake.Behavior
		graces   []int64 // asked for, 5 s apart
		want     time.Duration
		exit     int32
	}{
		{"that obeys", runtimefake.Behavior{StopsAfter: 2 * time.Second}, []int64{30}, 2 * time.Second, 143},
		{"that does not obey is killed", stubborn, []int64{30}, 30 * time.Second, 137},
		{"whose grace is shortened", stubborn, []int64{30, 3}, 8 * time.Second, 137},
		{"whose grace cannot be lengthened", stubborn, []int64{10, 300}, 10 * time.Second, 137},
		{"by force", stubborn, []int64{0}, 2 * time.Second, 137},
		{"by force after a graceful try", stubborn, []int64{30, 0}, 7 * time.Second, 137},
	} {
		t.Run(c.story, func(t *testing.T) {
			story(t, func(n *node) {
				n.rt.Script(lives(map[string]runtimefake.Behavior{"main": c.behavior}))
				pod := newPod("web")
				n.update(pod)
				n.sleep(time.Minute)
				since := time.Now()
				for i, grace := range c.graces {
					if i > 0 {
						n.sleep(5 * time.Second)
					}
					n.delete(pod, grace)
				}
				if !n.workers.CouldHaveRunningContainers(pod) {
					t.Error("while it ends: the pod is said to have no running container")
				}
				n.sleep(time.Minute)
				if got := n.ended(pod, "main", since); got != c.want || n.newest(pod, "main").ExitCode != c.exit {
					t.Errorf("ended after %s with %d, want %s with %d; calls %q", got, n.newest(pod, "main").ExitCode, c.want, c.exit, n.rt.Calls())
				}
				n.wantPhase(pod, "in the end", v1.PodFailed)
				n.wantStarts("in the end", "main/0")
				if n.workers.CouldHaveRunningContainers(pod) {
					t.Error("in the end: the pod is said to have running containers")
				}
			})
		})
	}
}

func TestADeletedPodThatExitsWithZeroSucceeds(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopExit: &runtimefake.Exit{}}}))
		pod := newPod("web")
		n.update(pod)
		n.delete(pod, 30)
		n.wantPhase(pod, "in the end", v1.PodSucceeded)
		n.wantState(pod, "main", "in the end", "Terminated 0:Completed")
	})
}

// As with the kubelet, whose sandbox is gone by then.
func TestAPodThatIsOverIsNotReadyToStartContainers(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 5 * time.Second}}))
		pod := newPod("web")
		n.update(pod)
		n.delete(pod, 30)
		for _, c := range []struct {
			story string
			want  v1.ConditionStatus
		}{{"while it stops", v1.ConditionTrue}, {"when it has stopped", v1.ConditionFalse}} {
			got := podstatus.FindCondition(n.get(pod).Conditions, v1.PodReadyToStartContainers)
			if got == nil || got.Status != c.want {
				t.Errorf("%s: PodReadyToStartContainers is %+v, want %s", c.story, got, c.want)
			}
			n.sleep(5 * time.Second)
		}
	})
}

func TestAPodDeletedBeforeItCouldStartFails(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Fail("StartPod", errors.New("disk full"))
		pod := newPod("web")
		n.update(pod)
		n.delete(pod, 30)
		n.wantPhase(pod, "in the end", v1.PodFailed)
		n.sleep(time.Hour)
		n.wantStarts("in the end")
	})
}

func TestAPodThatIsGoneIsEndedAndRemoved(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.remove(pod)
		if all, _ := n.rt.Pods(t.Context()); len(all) != 0 {
			t.Errorf("the runtime still has %+v, want nothing", all)
		}
		if got, ok := n.status.GetPodStatus(pod.UID); ok {
			t.Errorf("the manager still has %+v, want nothing", got)
		}
		if n.workers.CouldHaveRunningContainers(pod) {
			t.Error("a pod that is gone is said to have running containers")
		}
	})
}

func TestARemovalThatFailsIsTriedAgain(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.rt.Fail("RemovePod", errors.New("busy"))
		n.remove(pod)
		n.sleep(10 * time.Second)
		if all, _ := n.rt.Pods(t.Context()); len(all) != 0 {
			t.Errorf("the runtime still has %+v, want nothing", all)
		}
	})
}

func TestAStopThatFailsIsTriedAgain(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.rt.Fail("StopContainer", errors.New("busy"))
		n.delete(pod, 30)
		n.sleep(time.Second)
		n.wantState(pod, "main", "after a second", "Terminated 143:Error")
	})
}

func TestPreStopRunsWithinTheGrace(t *testing.T) {
	for _, c := range []struct {
		story     string
		takes     time.Duration
		grace     int64
		wantCalls []string
		want      time.Duration
	}{
		{"the hook leaves time", 4 * time.Second, 30, []string{"Exec fake://1 drain", "StopContainer fake://1 26s"}, 30 * time.Second},
		{"the hook takes all of it", time.Hour, 10, []string{"Exec fake://1 drain", "StopContainer fake://1 2s"}, 12 * time.Second},
	} {
		t.Run(c.story, func(t *testing.T) {
			story(t, func(n *node) {
				n.rt.Script(lives(map[string]runtimefake.Behavior{"main": stubborn}))
				n.rt.ExecWith(slowExec(c.takes))
				pod := newPod("web", v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{PreStop: execHandler("drain")}})
				n.update(pod)
				since := time.Now()
				n.delete(pod, c.grace)
				n.sleep(time.Minute)
				if got := n.callsOf("Exec", "StopContainer"); !slices.Equal(got, c.wantCalls) {
					t.Errorf("calls: got %q, want %q", got, c.wantCalls)
				}
				if got := n.ended(pod, "main", since); got != c.want {
					t.Errorf("ended after %s, want %s", got, c.want)
				}
				if got, want := n.events.has("main FailedPreStopHook: PreStopHook failed"), c.takes > time.Duration(c.grace)*time.Second; got != want {
					t.Errorf("an event says that the hook failed: %t, want %t", got, want)
				}
			})
		})
	}
}

func TestAShorterGraceEndsAPreStopHook(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": stubborn}))
		n.rt.ExecWith(slowExec(time.Hour))
		pod := newPod("web", v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{PreStop: execHandler("drain")}})
		n.update(pod)
		since := time.Now()
		n.delete(pod, 300)
		n.sleep(5 * time.Second)
		n.delete(pod, 3)
		n.sleep(time.Minute)
		if got := n.ended(pod, "main", since); got != 10*time.Second {
			t.Errorf("ended after %s, want 5s and 3s of grace and 2s to end", got)
		}
	})
}

func TestAFailingPreStopHookDoesNotKeepAContainer(t *testing.T) {
	story(t, func(n *node) {
		n.rt.ExecWith(func(context.Context, runtime.Container, []string) (runtime.ExecResult, error) {
			return runtime.ExecResult{ExitCode: 1}, nil
		})
		pod := newPod("web", v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{PreStop: execHandler("drain")}})
		n.update(pod)
		n.delete(pod, 30)
		n.wantState(pod, "main", "in the end", "Terminated 143:Error")
		if !n.events.has(`main FailedPreStopHook: PreStopHook failed: exec ["drain"] exited with 1: ""`) {
			t.Errorf("events: got %q, want one about the hook", n.events.all)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPostStart(t *testing.T) {
	hooked := v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{PostStart: execHandler("warm-up")}}
	t.Run("is over before the container counts as running and the next one starts", func(t *testing.T) {
		story(t, func(n *node) {
			n.rt.ExecWith(slowExec(5 * time.Second))
			pod := newPod("web", hooked, v1.Container{Name: "other"})
			n.update(pod)
			n.wantStarts("while the hook runs", "main/0")
			n.wantState(pod, "main", "while the hook runs", "Waiting ContainerCreating")
			n.sleep(5 * time.Second)
			n.wantStarts("after the hook", "main/0", "other/0")
			n.wantState(pod, "main", "after the hook", "Running")
		})
	})
	t.Run("kills the container when it fails", func(t *testing.T) {
		story(t, func(n *node) {
			n.rt.ExecWith(func(context.Context, runtime.Container, []string) (runtime.ExecResult, error) {
				return runtime.ExecResult{ExitCode: 7, Output: []byte("cold")}, nil
			})
			pod := newPod("web", hooked)
			n.update(pod)
			n.wantStarts("at first", "main/0", "main/1")
			n.wantState(pod, "main", "at first", "Waiting CrashLoopBackOff restarts=1 last=143:Error")
			if !n.events.has(`main FailedPostStartHook: PostStartHook failed: exec ["warm-up"] exited with 7: "cold"`) {
				t.Errorf("events: got %q, want one about the hook", n.events.all)
			}
		})
	})
	t.Run("that has failed leaves no container that counts as running", func(t *testing.T) {
		story(t, func(n *node) {
			n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 9 * time.Second}}))
			n.rt.ExecWith(func(context.Context, runtime.Container, []string) (runtime.ExecResult, error) {
				return runtime.ExecResult{ExitCode: 7}, nil
			})
			pod := newPod("web", hooked)
			pod.Spec.RestartPolicy = v1.RestartPolicyNever
			n.update(pod)
			n.wantState(pod, "main", "while it is stopped", "Waiting PostStartHookError")
			n.wantPhase(pod, "while it is stopped", v1.PodPending)
			n.sleep(10 * time.Second)
			n.wantState(pod, "main", "in the end", "Terminated 143:Error")
		})
	})
	t.Run("does not hold up the end of the pod", func(t *testing.T) {
		story(t, func(n *node) {
			n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 9 * time.Second}}))
			n.rt.ExecWith(slowExec(time.Hour))
			pod := newPod("web", hooked)
			n.update(pod)
			since := time.Now()
			n.delete(pod, 30)
			n.wantState(pod, "main", "while it ends", "Running")
			n.sleep(10 * time.Second)
			if got := n.ended(pod, "main", since); got != 9*time.Second {
				t.Errorf("ended after %s, want 9s", got)
			}
			if n.events.begins("main FailedPostStartHook: PostStartHook failed") {
				t.Error("a hook that was not waited for is said to have failed")
			}
		})
	})
	t.Run("can sleep", func(t *testing.T) {
		story(t, func(n *node) {
			pod := newPod("web", v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{
				PostStart: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 7}},
			}})
			n.update(pod)
			n.sleep(6 * time.Second)
			n.wantState(pod, "main", "after 6s", "Waiting ContainerCreating")
			n.sleep(time.Second)
			n.wantState(pod, "main", "after 7s", "Running")
		})
	})
	t.Run("tells by an event that it went without TLS", func(t *testing.T) {
		plain := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme == "https" {
				return nil, http.ErrSchemeMismatch
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		story(t, func(n *node) {
			pod := newPod("web", v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{PostStart: &v1.LifecycleHandler{
				HTTPGet: &v1.HTTPGetAction{Host: "web.example", Port: intstr.FromInt32(443), Scheme: v1.URISchemeHTTPS},
			}}})
			n.update(pod)
			n.wantState(pod, "main", "after the hook", "Running")
			if !n.events.has("main LifecycleHTTPFallback: request to HTTPS lifecycle hook web.example:443 got HTTP response, retry with HTTP succeeded") {
				t.Errorf("events: got %q, want one about the fallback", n.events.all)
			}
		}, func(o *worker.Options) { o.HTTP = &http.Client{Transport: plain} })
	})
}

func TestActiveDeadline(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 5 * time.Second, StopExit: &runtimefake.Exit{}}}))
		pod := newPod("job")
		pod.Spec.ActiveDeadlineSeconds = new(int64(45))
		n.update(pod)
		n.sleep(44 * time.Second)
		n.wantPhase(pod, "before the deadline", v1.PodRunning)
		n.sleep(10 * time.Second)
		got := n.get(pod)
		if got.Phase != v1.PodFailed || got.Reason != "DeadlineExceeded" || got.Message != "Pod was active on the node longer than the specified deadline" {
			t.Errorf("after the deadline: got %s %q %q, want Failed by the deadline", got.Phase, got.Reason, got.Message)
		}
		if end := n.newest(pod, "main").FinishedAt.Sub(n.begin); end != 50*time.Second {
			t.Errorf("the container ended after %s, want 50s", end)
		}
		n.sleep(time.Hour)
		n.wantStarts("forever", "main/0")
	})
}

func TestUnhealthyContainersAreStoppedAndStartedAgain(t *testing.T) {
	probed := v1.Container{
		Name:          "main",
		LivenessProbe: &v1.Probe{TerminationGracePeriodSeconds: new(int64(4))},
		StartupProbe:  &v1.Probe{},
	}
	for _, c := range []struct {
		story  string
		probe  runtime.ProbeKind
		policy v1.RestartPolicy
		exit   *runtimefake.Exit // when it obeys; nil: it does not
		want   time.Duration
		starts int
		event  string
	}{
		{"liveness with a grace of its own", runtime.LivenessProbe, v1.RestartPolicyAlways, nil, 4 * time.Second, 2, "main Killing: Container main failed liveness probe, will be restarted"},
		{"startup with the pod's grace", runtime.StartupProbe, v1.RestartPolicyAlways, nil, 30 * time.Second, 2, "main Killing: Container main failed startup probe, will be restarted"},
		{"an exit code of 0 does not count as success", runtime.LivenessProbe, v1.RestartPolicyOnFailure, &runtimefake.Exit{}, 0, 2, "main Killing: Container main failed liveness probe, will be restarted"},
		{"never is never", runtime.LivenessProbe, v1.RestartPolicyNever, nil, 4 * time.Second, 1, "main Killing: Container main failed liveness probe"},
	} {
		t.Run(c.story, func(t *testing.T) {
			story(t, func(n *node) {
				n.rt.Script(func(_ *v1.Pod, _ *v1.Container, attempt int) runtimefake.Behavior {
					if attempt > 0 {
						return runtimefake.Behavior{}
					}
					if c.exit != nil {
						return runtimefake.Behavior{StopExit: c.exit}
					}
					return stubborn
				})
				pod := withPolicy(newPod("web", probed), c.policy)
				n.update(pod)
				first, since := n.newest(pod, "main"), time.Now()
				n.workers.ContainerUnhealthy(pod.UID, first.ID, c.probe)
				n.sleep(time.Minute)
				if got := n.firstEnd(pod, first.ID).Sub(since); got != c.want {
					t.Errorf("ended after %s, want %s", got, c.want)
				}
				if got := len(n.starts()); got != c.starts {
					t.Errorf("started %d times, want %d; status %+v", got, c.starts, n.get(pod))
				}
				if !n.events.has(c.event) {
					t.Errorf("events: got %q, want %q", n.events.all, c.event)
				}
				if c.starts == 2 {
					n.wantPhase(pod, "in the end", v1.PodRunning)
					if got := n.container(pod, "main"); got.State.Running == nil || got.RestartCount != 1 {
						t.Errorf("in the end: got %s, want it running after one restart", describe(got))
					}
					n.workers.ContainerUnhealthy(pod.UID, first.ID, c.probe) // late news of the old one
					n.sleep(time.Minute)
					if got := len(n.starts()); got != 2 {
						t.Errorf("news of a replaced container: started %d times, want 2", got)
					}
				} else {
					n.wantPhase(pod, "in the end", v1.PodFailed)
				}
			})
		})
	}
}

func TestARuleCanRestartAllContainers(t *testing.T) {
	story(t, func(n *node) {
		never := v1.ContainerRestartPolicyNever
		n.rt.Script(func(_ *v1.Pod, c *v1.Container, attempt int) runtimefake.Behavior {
			if c.Name == "init" {
				return runtimefake.Behavior{Lives: time.Second}
			}
			return runtimefake.Behavior{}
		})
		pod := withPolicy(withInit(newPod("job",
			v1.Container{Name: "main", RestartPolicy: &never, RestartPolicyRules: []v1.ContainerRestartRule{{
				Action:    v1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{88}},
			}}},
			v1.Container{Name: "other"}),
			v1.Container{Name: "init"}), v1.RestartPolicyNever)
		n.update(pod)
		n.sleep(time.Second)
		n.wantStarts("at first", "init/0", "main/0", "other/0")
		n.rt.Exit(n.newest(pod, "main").ID, runtimefake.Exit{Code: 88})
		n.sleep(5 * time.Second)
		n.wantStarts("after the exit", "init/0", "main/0", "other/0", "init/1", "main/1", "other/1")
		n.wantPhase(pod, "after the exit", v1.PodRunning)
		n.wantState(pod, "other", "after the exit", "Running restarts=1 last=137:RestartingAllContainers")
		if c := podstatus.FindCondition(n.get(pod).Conditions, v1.AllContainersRestarting); c == nil || c.Status != v1.ConditionFalse {
			t.Errorf("condition: got %+v, want False once it is over", c)
		}
	})
}

func slowExec(takes time.Duration) func(context.Context, runtime.Container, []string) (runtime.ExecResult, error) {
	return func(ctx context.Context, _ runtime.Container, _ []string) (runtime.ExecResult, error) {
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
			return runtime.ExecResult{}, nil
		case <-ctx.Done():
			return runtime.ExecResult{}, ctx.Err()
		}
	}
}

func execHandler(command ...string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: command}}
}

// callsOf are the calls of some methods, in order.
func (n *node) callsOf(methods ...string) []string {
	return slices.DeleteFunc(n.rt.Calls(), func(call string) bool {
		method, _, _ := strings.Cut(call, " ")
		return !slices.Contains(methods, method)
	})
}

// firstEnd is when a container ended.
func (n *node) firstEnd(pod *v1.Pod, id string) time.Time {
	n.t.Helper()
	synctest.Wait()
	found, err := n.rt.Pod(n.t.Context(), pod.UID)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, c := range found.Containers {
		if c.ID == id {
			return c.FinishedAt
		}
	}
	n.t.Fatalf("container %s is not listed: %+v", id, found.Containers)
	return time.Time{}
}
