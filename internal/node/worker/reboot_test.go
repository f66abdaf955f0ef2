package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/runtimefake"
)

// reboot ends the process and restarts the machine. What the API has of the pods is what
// was reported last.
func (n *node) reboot(pods ...*v1.Pod) *node {
	n.t.Helper()
	for _, pod := range pods {
		pod.Status = n.get(pod)
	}
	n.stop()
	n.rt.Reboot()
	next := n.machine.run(n.t)
	for _, pod := range pods {
		next.update(pod)
	}
	next.workers.SourcesReady()
	return next
}

func TestAfterARebootInitContainersRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(lives(map[string]runtimefake.Behavior{"first": {Lives: time.Second}, "second": {Lives: time.Second}}))
		n, pod := m.run(t), withInit(newPod("web"), v1.Container{Name: "first"}, sidecar("proxy"), v1.Container{Name: "second"})
		n.update(pod)
		n.sleep(3 * time.Second)
		n.wantStarts("before the reboot", "first/0", "proxy/0", "second/0", "main/0")

		n = n.reboot(pod)
		again := []string{"first/0", "proxy/0", "second/0", "main/0", "first/1"}
		n.wantStarts("at first only the first init container", again...)
		n.wantState(pod, "main", "while the init containers run", "Terminated 137:ContainerStatusUnknown")
		n.sleep(time.Second)
		n.wantStarts("the sidecar before the main container", append(again, "proxy/1", "second/1")...)
		n.sleep(time.Second)
		n.wantStarts("all", append(again, "proxy/1", "second/1", "main/1")...)
		n.wantState(pod, "first", "in the end", "Terminated 0:Completed restarts=1 last=0:Completed")
		n.wantState(pod, "proxy", "in the end", "Running restarts=1 last=137:ContainerStatusUnknown")
		n.wantState(pod, "main", "in the end", "Running restarts=1 last=137:ContainerStatusUnknown")
		n.wantPhase(pod, "in the end", v1.PodRunning)

		n.rt.Exit(n.newest(pod, "main").ID, runtimefake.Exit{Code: 1})
		n.sleep(time.Minute)
		n.wantStarts("a crash later runs no init container", append(again, "proxy/1", "second/1", "main/1", "main/2")...)
		n.stop()
	})
}

func TestAfterARebootDuringInitialization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(lives(map[string]runtimefake.Behavior{"first": {Lives: time.Second}, "second": {Lives: time.Minute}}))
		n, pod := m.run(t), withInit(newPod("web"), v1.Container{Name: "first"}, v1.Container{Name: "second"})
		n.update(pod)
		n.sleep(10 * time.Second)
		n = n.reboot(pod)
		n.sleep(10 * time.Second)
		n.wantStarts("again from the first", "first/0", "second/0", "first/1", "second/1")
		n.sleep(time.Minute)
		n.wantState(pod, "main", "in the end", "Running")
		n.stop()
	})
}

func TestWhatARebootMeansForEachRestartPolicy(t *testing.T) {
	for _, c := range []struct {
		policy v1.RestartPolicy
		exit   bool // the first main container has succeeded before
		starts []string
		phase  v1.PodPhase
	}{
		{v1.RestartPolicyAlways, true, []string{"init/0", "a/0", "b/0", "a/1", "init/1", "a/2", "b/1"}, v1.PodRunning},
		{v1.RestartPolicyOnFailure, true, []string{"init/0", "a/0", "b/0", "init/1", "b/1"}, v1.PodRunning},
		{v1.RestartPolicyOnFailure, false, []string{"init/0", "a/0", "b/0", "init/1", "a/1", "b/1"}, v1.PodRunning},
		{v1.RestartPolicyNever, false, []string{"init/0", "a/0", "b/0"}, v1.PodFailed},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine()
				m.rt.Script(lives(map[string]runtimefake.Behavior{"init": {Lives: time.Second}}))
				pod := withPolicy(withInit(newPod("web", v1.Container{Name: "a"}, v1.Container{Name: "b"}), v1.Container{Name: "init"}), c.policy)
				n := m.run(t)
				n.update(pod)
				n.sleep(time.Second)
				if c.exit {
					n.rt.Exit(n.newest(pod, "a").ID, runtimefake.Exit{})
					n.sleep(time.Second)
				}
				n = n.reboot(pod)
				n.sleep(time.Minute)
				n.wantStarts("after the reboot", c.starts...)
				n.wantPhase(pod, "after the reboot", c.phase)
				n.stop()
			})
		})
	}
}

// What a boot takes away, such as volumes in memory, the runtime makes again in StartPod.
func TestAPlaceIsMadeAgainAfterAReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		n, pod := m.run(t), newPod("web")
		n.update(pod)
		n = n.reboot(pod)
		made := 0
		for _, call := range n.rt.Calls() {
			if call == "StartPod web" {
				made++
			}
		}
		if made != 2 {
			t.Errorf("StartPod was called %d times, want once in each boot", made)
		}
		n.stop()
	})
}
