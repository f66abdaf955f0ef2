package worker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

func TestAPodIsStartedAndReported(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		n.wantPhase(pod, "started", v1.PodRunning)
		n.wantState(pod, "main", "started", "Running")
		got := n.get(pod)
		if got.HostIP != "192.0.2.1" || got.PodIP != "10.0.0.1" || got.StartTime == nil || got.QOSClass != v1.PodQOSBestEffort {
			t.Errorf("got host %q, pod %q, start %v, class %q; want the node's address, the runtime's, a time, BestEffort", got.HostIP, got.PodIP, got.StartTime, got.QOSClass)
		}
		for _, want := range []v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled} {
			if c := podstatus.FindCondition(got.Conditions, want); c == nil || c.Status != v1.ConditionTrue || c.ObservedGeneration != 1 {
				t.Errorf("condition %s: got %+v, want True at generation 1", want, c)
			}
		}
		if c := n.container(pod, "main"); c.ContainerID != "fake://1" || !c.Ready || c.Started == nil || !*c.Started {
			t.Errorf("container: got %+v, want fake://1, ready and started", c)
		}
	})
}

func TestInitContainersRunOneAfterTheOther(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"a": {Lives: time.Second}, "b": {Lives: time.Second}}))
		pod := withInit(newPod("web"), v1.Container{Name: "a"}, v1.Container{Name: "b"})
		n.update(pod)
		n.wantStarts("at first", "a/0")
		n.wantPhase(pod, "at first", v1.PodPending)
		n.wantState(pod, "main", "at first", "Waiting PodInitializing")
		n.sleep(time.Second)
		n.wantStarts("when a is done", "a/0", "b/0")
		n.wantState(pod, "a", "when a is done", "Terminated 0:Completed")
		n.sleep(time.Second)
		n.wantStarts("when b is done", "a/0", "b/0", "main/0")
		n.wantPhase(pod, "when b is done", v1.PodRunning)
	})
}

func TestAFailedInitContainerFailsAPodThatNeverRestarts(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"a": {Lives: time.Second, ExitCode: 2}}))
		pod := withPolicy(withInit(newPod("job"), v1.Container{Name: "a"}), v1.RestartPolicyNever)
		n.update(pod)
		n.sleep(time.Hour)
		n.wantStarts("forever", "a/0")
		n.wantPhase(pod, "forever", v1.PodFailed)
		n.wantState(pod, "a", "forever", "Terminated 2:Error")
	})
}

func TestAFailedInitContainerIsTriedAgainWithBackOff(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(func(_ *v1.Pod, c *v1.Container, attempt int) runtimefake.Behavior {
			if c.Name == "a" && attempt < 2 {
				return runtimefake.Behavior{Lives: time.Second, ExitCode: 1}
			}
			return runtimefake.Behavior{Lives: time.Second}
		})
		pod := withPolicy(withInit(newPod("job"), v1.Container{Name: "a"}), v1.RestartPolicyOnFailure)
		n.update(pod)
		n.sleep(2 * time.Second) // two failures
		n.wantState(pod, "a", "after two failures", "Waiting CrashLoopBackOff restarts=1 last=1:Error")
		n.wantPhase(pod, "after two failures", v1.PodPending)
		n.sleep(10*time.Second + 2*time.Second)
		n.wantStarts("in the end", "a/0", "a/1", "a/2", "main/0")
		n.wantPhase(pod, "in the end", v1.PodSucceeded)
	})
}

func TestASidecarIsStartedFirstAndKeptRunning(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"fetch": {Lives: 3 * time.Second}}))
		pod := withInit(newPod("web"), sidecar("proxy"), v1.Container{Name: "fetch"})
		n.update(pod)
		n.wantStarts("at once", "proxy/0", "fetch/0")
		n.sleep(3 * time.Second)
		n.wantStarts("initialized", "proxy/0", "fetch/0", "main/0")
		n.rt.Exit(n.newest(pod, "proxy").ID, runtimefake.Exit{Code: 1})
		n.sleep(time.Second)
		n.wantStarts("after the sidecar's end", "proxy/0", "fetch/0", "main/0", "proxy/1")
		n.wantPhase(pod, "after the sidecar's end", v1.PodRunning)
		n.wantState(pod, "proxy", "after the sidecar's end", "Running restarts=1 last=1:Error")
	})
}

func TestSidecarsEndAfterTheWorkInReverseOrder(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{
			"main":  {Lives: time.Minute},
			"proxy": {StopsAfter: 2 * time.Second, StopExit: &runtimefake.Exit{}},
			"log":   {StopsAfter: 3 * time.Second, StopExit: &runtimefake.Exit{}},
		}))
		pod := withPolicy(withInit(newPod("job"), sidecar("proxy"), sidecar("log")), v1.RestartPolicyNever)
		n.update(pod)
		n.sleep(time.Minute)
		n.wantPhase(pod, "while the sidecars end", v1.PodRunning)
		n.sleep(10 * time.Second)
		n.wantPhase(pod, "in the end", v1.PodSucceeded)
		n.wantStarts("in the end", "proxy/0", "log/0", "main/0")
		main, log, proxy := n.newest(pod, "main"), n.newest(pod, "log"), n.newest(pod, "proxy")
		if got := log.FinishedAt.Sub(main.FinishedAt); got != 3*time.Second {
			t.Errorf("log ended %s after main, want 3s", got)
		}
		if got := proxy.FinishedAt.Sub(log.FinishedAt); got != 2*time.Second {
			t.Errorf("proxy ended %s after log, want 2s", got)
		}
	})
}

func TestRestartPolicies(t *testing.T) {
	never, onFailure, always := v1.ContainerRestartPolicyNever, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyAlways
	on42 := []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestart,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	for _, c := range []struct {
		policy v1.RestartPolicy
		own    *v1.ContainerRestartPolicy
		rules  []v1.ContainerRestartRule
		exit   int32
		starts int // in the first five seconds
		phase  v1.PodPhase
	}{
		{v1.RestartPolicyAlways, nil, nil, 0, 2, v1.PodRunning},
		{v1.RestartPolicyAlways, nil, nil, 1, 2, v1.PodRunning},
		{v1.RestartPolicyOnFailure, nil, nil, 0, 1, v1.PodSucceeded},
		{v1.RestartPolicyOnFailure, nil, nil, 1, 2, v1.PodRunning},
		{v1.RestartPolicyNever, nil, nil, 0, 1, v1.PodSucceeded},
		{v1.RestartPolicyNever, nil, nil, 1, 1, v1.PodFailed},
		{v1.RestartPolicyAlways, &never, nil, 1, 1, v1.PodFailed},
		{v1.RestartPolicyNever, &onFailure, nil, 1, 2, v1.PodRunning},
		{v1.RestartPolicyNever, &always, nil, 0, 2, v1.PodRunning},
		{v1.RestartPolicyNever, &never, on42, 42, 2, v1.PodRunning},
		{v1.RestartPolicyNever, &never, on42, 41, 1, v1.PodFailed},
	} {
		own := "none"
		if c.own != nil {
			own = string(*c.own)
		}
		t.Run(fmt.Sprintf("pod %s, container %s, rules %d, exit %d", c.policy, own, len(c.rules), c.exit), func(t *testing.T) {
			story(t, func(n *node) {
				n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second, ExitCode: c.exit}}))
				pod := withPolicy(newPod("job", v1.Container{Name: "main", RestartPolicy: c.own, RestartPolicyRules: c.rules}), c.policy)
				n.update(pod)
				n.sleep(5 * time.Second)
				if got := len(n.starts()); got != c.starts {
					t.Errorf("started %d times, want %d", got, c.starts)
				}
				n.wantPhase(pod, "after five seconds", c.phase)
			})
		})
	}
}

func TestCrashLoopBackOffDoublesToFiveMinutes(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second, ExitCode: 3, Message: "boom"}}))
		var starts []time.Time
		pod := newPod("crash")
		n.update(pod)
		for range 3000 {
			if got := len(n.starts()); got > len(starts) {
				starts = append(starts, time.Now())
			}
			n.sleep(time.Second)
		}
		var waits []time.Duration
		for i := 1; i < len(starts); i++ {
			waits = append(waits, starts[i].Sub(starts[i-1])-time.Second) // it lived for one
		}
		want := []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300, 300, 300}
		for i := range want {
			want[i] *= time.Second
		}
		if len(waits) > len(want) {
			waits = waits[:len(want)]
		}
		if !slices.Equal(waits, want[:len(waits)]) || len(waits) < 10 {
			t.Errorf("waits between end and start: got %s, want %s", waits, want)
		}
		c := n.container(pod, "main")
		if w := c.State.Waiting; w == nil || w.Reason != "CrashLoopBackOff" || w.Message != "back-off 5m0s restarting failed container=main pod=crash_default(crash-uid)" {
			t.Errorf("waiting: got %+v, want the kubelet's message for 5 min", w)
		}
		if last := c.LastTerminationState.Terminated; last == nil || last.ExitCode != 3 || last.Message != "boom" || int(c.RestartCount) != len(starts)-1 {
			t.Errorf("got restarts %d, last %+v; want %d, exit 3 with its message", c.RestartCount, last, len(starts)-1)
		}
		n.wantPhase(pod, "in the loop", v1.PodRunning)
	})
}

func TestCrashLoopBackOffIsForgivenAfterTenGoodMinutes(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(func(_ *v1.Pod, _ *v1.Container, attempt int) runtimefake.Behavior {
			if attempt == 3 {
				return runtimefake.Behavior{Lives: 11 * time.Minute, ExitCode: 1}
			}
			return runtimefake.Behavior{Lives: time.Second, ExitCode: 1}
		})
		pod := newPod("crash")
		n.update(pod)
		n.sleep(40 * time.Second) // 1 + 0 + 1 + 10 + 1 + 20, and attempt 3 runs
		n.wantStarts("in the good run", "main/0", "main/1", "main/2", "main/3")
		n.sleep(11 * time.Minute)
		n.wantState(pod, "main", "after the good run and a bad one", "Waiting CrashLoopBackOff restarts=4 last=1:Error")
		if w := n.container(pod, "main").State.Waiting; w != nil && w.Message != "back-off 10s restarting failed container=main pod=crash_default(crash-uid)" {
			t.Errorf("got %q, want to begin with 10s again", w.Message)
		}
	})
}

func TestAStartThatFails(t *testing.T) {
	broken := &runtime.StartError{Reason: runtime.WaitingRunError, Err: errors.New("no such file")}
	t.Run("and left nothing behind is tried again every 10 s", func(t *testing.T) {
		story(t, func(n *node) {
			n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StartError: broken}}))
			pod := newPod("web")
			n.update(pod)
			n.wantState(pod, "main", "at once", "Waiting RunContainerError")
			n.sleep(25 * time.Second)
			n.wantStarts("after 25s", "main/0", "main/0", "main/0")
			n.rt.Script(nil)
			n.sleep(10 * time.Second)
			n.wantState(pod, "main", "repaired", "Running")
		})
	})
	t.Run("and is listed backs off", func(t *testing.T) {
		story(t, func(n *node) {
			n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StartError: broken, Listed: true}}))
			pod := newPod("web")
			n.update(pod)
			n.wantState(pod, "main", "at once", "Waiting CrashLoopBackOff restarts=1 last=128:StartError")
			n.sleep(15 * time.Second)
			n.wantStarts("after 15s", "main/0", "main/1", "main/2")
		})
	})
	t.Run("and is listed ends a pod that never restarts", func(t *testing.T) {
		story(t, func(n *node) {
			n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StartError: broken, Listed: true}}))
			pod := withPolicy(newPod("job"), v1.RestartPolicyNever)
			n.update(pod)
			n.wantPhase(pod, "at once", v1.PodFailed)
			n.wantState(pod, "main", "at once", "Terminated 128:StartError")
		})
	})
}

func TestAPlaceThatCannotBeMadeIsTriedAgain(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Fail("StartPod", errors.New("disk full"))
		pod := newPod("web")
		n.update(pod)
		n.wantState(pod, "main", "at first", "Waiting ContainerCreating")
		n.wantPhase(pod, "at first", v1.PodPending)
		n.sleep(10 * time.Second)
		n.wantState(pod, "main", "after 10s", "Running")
		if !n.events.has("FailedCreatePodSandBox: Failed to create pod sandbox: disk full") {
			t.Errorf("events: got %q, want one that tells of the disk", n.events.all)
		}
	})
}

func TestARuntimeThatFailsForAWhileDelaysOnly(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Fail("Pod", errors.New("busy"), errors.New("busy"))
		pod := newPod("web")
		n.update(pod)
		n.sleep(3 * time.Second)
		n.wantState(pod, "main", "in the end", "Running")
	})
}

func TestAContainerThatTheRuntimeHasLostIsNotRunTwice(t *testing.T) {
	for policy, want := range map[v1.RestartPolicy]struct {
		phase v1.PodPhase
		state string
	}{
		v1.RestartPolicyAlways: {v1.PodRunning, "Running restarts=1 last=137:ContainerStatusUnknown"},
		v1.RestartPolicyNever:  {v1.PodFailed, "Terminated 137:ContainerStatusUnknown last=137:ContainerStatusUnknown"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			story(t, func(n *node) {
				pod := withPolicy(newPod("web"), policy)
				n.update(pod)
				n.rt.Vanish(pod.UID)
				n.sleep(time.Second)
				n.wantPhase(pod, "after the loss", want.phase)
				if policy == v1.RestartPolicyNever {
					n.wantStarts("after the loss", "main/0")
					return
				}
				n.wantStarts("after the loss", "main/0", "main/1")
				n.wantState(pod, "main", "after the loss", want.state)
			})
		})
	}
}
