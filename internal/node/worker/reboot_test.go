package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
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

// losing is a runtime whose sandboxes can end. As with a container runtime, containers are of an earlier sandbox once there is another one.
type losing struct {
	*runtimefake.Runtime
	gone    bool
	earlier map[string]bool
	always  bool // each sandbox ends at once
}

func (l *losing) StartPod(ctx context.Context, pod *v1.Pod) error {
	l.gone = l.always
	return l.Runtime.StartPod(ctx, pod)
}

func (l *losing) Pod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	found, err := l.Runtime.Pod(ctx, uid)
	found.NoPlace = l.gone
	for i := range found.Containers {
		found.Containers[i].EarlierPlace = !l.gone && l.earlier[found.Containers[i].ID]
	}
	return found, err
}

// lose ends the sandbox with all that runs in it.
func (l *losing) lose(t *testing.T, uid types.UID) {
	found, err := l.Runtime.Pod(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	l.gone, l.earlier = true, map[string]bool{}
	for _, c := range found.Containers {
		l.earlier[c.ID] = true
		if c.State == runtime.Running {
			l.Exit(c.ID, runtimefake.Exit{Code: 255, Reason: "Unknown"})
		}
	}
	synctest.Wait()
}

// A sandbox that ends under a running statusd is replaced before it is decided what starts: init containers run again, as with the kubelet.
func TestSandbox_ThatEnds_InitContainersRunAgain(t *testing.T) {
	l := &losing{}
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"first": {Lives: time.Second}}))
		pod := withInit(newPod("web"), v1.Container{Name: "first"}, sidecar("proxy"))
		n.update(pod)
		n.sleep(time.Minute)
		n.wantStarts("before", "first/0", "proxy/0", "main/0")
		l.lose(t, pod.UID)
		n.sleep(time.Minute)
		n.wantStarts("after", "first/0", "proxy/0", "main/0", "first/1", "proxy/1", "main/1")
	}, func(o *worker.Options) { l.Runtime = o.Runtime.(*runtimefake.Runtime); o.Runtime = l })
}

// Sandboxes that end at once are made again with pauses.
func TestSandbox_ThatAlwaysEnds_IsNotMadeInALoop(t *testing.T) {
	l := &losing{gone: true, always: true}
	story(t, func(n *node) {
		n.update(newPod("web"))
		n.sleep(time.Minute)
		made := 0
		for _, call := range n.rt.Calls() {
			if call == "StartPod web" {
				made++
			}
		}
		if made < 5 || made > 20 {
			t.Errorf("%d sandboxes made in a minute, want some with pauses", made)
		}
		n.wantStarts("without a sandbox")
	}, func(o *worker.Options) { l.Runtime = o.Runtime.(*runtimefake.Runtime); o.Runtime = l })
}
