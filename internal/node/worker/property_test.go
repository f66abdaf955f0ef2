package worker_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// step is something that happens to a pod.
type step struct {
	what  string
	pick  int // which container, where one is picked
	code  int32
	grace int64
	clock time.Duration
	wait  time.Duration
}

// life is a pod with all that happens to it.
type life struct {
	policy   v1.RestartPolicy
	init     int
	sidecars int
	regular  int
	lives    time.Duration
	stops    time.Duration
	servers  int // other pods that run forever
	jobs     int // other pods that end after a second
	steps    []step
}

func drawLife(t *rapid.T) life {
	durations := rapid.SampledFrom([]time.Duration{0, time.Second, 7 * time.Second, 45 * time.Second, 11 * time.Minute})
	return life{
		policy:   rapid.SampledFrom([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}).Draw(t, "policy"),
		init:     rapid.IntRange(0, 2).Draw(t, "init containers"),
		sidecars: rapid.IntRange(0, 2).Draw(t, "sidecars"),
		regular:  rapid.IntRange(1, 2).Draw(t, "containers"),
		lives:    rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "lives"),
		stops:    durations.Draw(t, "stops after"),
		servers:  rapid.IntRange(0, 2).Draw(t, "servers"),
		jobs:     rapid.IntRange(0, 2).Draw(t, "jobs"),
		steps: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				what:  rapid.SampledFrom([]string{"exit", "exit", "unhealthy", "restart", "reboot", "clock", "newcomer", "vanish", "fail start", "fail look", "fail stop", "delete", "remove", "nothing"}).Draw(t, "what"),
				pick:  rapid.IntRange(0, 5).Draw(t, "which"),
				code:  rapid.SampledFrom([]int32{0, 1, 143}).Draw(t, "code"),
				grace: rapid.SampledFrom([]int64{0, 5, 30}).Draw(t, "grace"),
				clock: rapid.SampledFrom([]time.Duration{0, 24 * time.Hour, -24 * time.Hour, -25 * 365 * 24 * time.Hour}).Draw(t, "clock"),
				wait:  durations.Draw(t, "wait"),
			}
		}), 1, 12).Draw(t, "steps"),
	}
}

func (l life) pod() *v1.Pod {
	pod := withPolicy(newPod("pod"), l.policy)
	pod.Spec.Containers = nil
	for i := range l.sidecars {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, sidecar(fmt.Sprintf("side%d", i)))
	}
	for i := range l.init {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: fmt.Sprintf("init%d", i)})
	}
	for i := range l.regular {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("main%d", i)})
	}
	return pod
}

// watcher sits in the runtime's script and checks each start as it happens.
type watcher struct {
	uid      types.UID  // of the pod
	spec     v1.PodSpec // of the pod, which never changes
	pod      *v1.Pod    // only the test's goroutine reads it
	mu       sync.Mutex
	rt       *runtimefake.Runtime
	life     life
	attempts map[string]int
	boot     int            // counts the restarts of the machine
	boots    map[string]int // the boot in which a container was started last
	failing  int            // starts that are going to fail
	others   []*v1.Pod      // pods beside this one
	ended    bool           // the pod was deleted, removed, or terminal
	problems []string
}

func (w *watcher) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// start is the script of the runtime.
func (w *watcher) start(pod *v1.Pod, c *v1.Container, attempt int) runtimefake.Behavior {
	if pod.UID != w.uid {
		return w.startOther(pod)
	}
	w.mu.Lock()
	before, ran := w.attempts[c.Name]
	if w.failing > 0 {
		w.failing--
	} else {
		w.attempts[c.Name] = attempt
		w.boots[c.Name] = w.boot
	}
	ended, uninitialized := w.ended, w.uninitialized(c.Name)
	w.mu.Unlock()
	if ran && attempt <= before {
		w.problem("container %s: attempt %d after %d", c.Name, attempt, before)
	}
	if ran && w.life.policy == v1.RestartPolicyNever && !strings.HasPrefix(c.Name, "side") {
		w.problem("container %s of a pod that never restarts was started again", c.Name)
	}
	if uninitialized != "" {
		w.problem("container %s was started before %s, which has not run since the machine started", c.Name, uninitialized)
	}
	if ended {
		w.problem("container %s was started after the end of the pod", c.Name)
	}
	behavior := runtimefake.Behavior{StopsAfter: w.life.stops}
	if strings.HasPrefix(c.Name, "init") {
		behavior.Lives = time.Second
	} else if strings.HasPrefix(c.Name, "main") {
		behavior.Lives = w.life.lives
	}
	return behavior
}

// uninitialized is an init container that has not run in this boot, though a regular one
// is started. The caller holds mu.
func (w *watcher) uninitialized(name string) string {
	if w.life.policy == v1.RestartPolicyNever || !strings.HasPrefix(name, "main") {
		return ""
	}
	for _, c := range w.spec.InitContainers {
		if boot, ran := w.boots[c.Name]; !ran || boot != w.boot {
			return c.Name
		}
	}
	return ""
}

func (w *watcher) startOther(pod *v1.Pod) runtimefake.Behavior {
	w.mu.Lock()
	w.failing = max(0, w.failing-1)
	w.mu.Unlock()
	if strings.HasPrefix(pod.Name, "job") {
		return runtimefake.Behavior{Lives: time.Second}
	}
	return runtimefake.Behavior{}
}

// room is how many of the other pods fit on the node.
const room = 3

// addOther adds a pod that takes a third of the node.
func (w *watcher) addOther(n *node, name string) *v1.Pod {
	pod := big(name)
	pod.Spec.Containers[0].Ports = nil
	if strings.HasPrefix(name, "job") {
		withPolicy(pod, v1.RestartPolicyNever)
	}
	w.others = append(w.others, pod)
	n.update(pod)
	return pod
}

// newcomer adds a pod and checks that it is rejected if there is no room for it, and only then.
func (w *watcher) newcomer(n *node) {
	running, wanted := 0, 0
	for _, pod := range w.others {
		alive := n.newest(pod, "main").State == runtime.Running
		if alive {
			running++
		}
		if status, ok := n.status.GetPodStatus(pod.UID); alive || strings.HasPrefix(pod.Name, "server") && (!ok || !podstatus.IsTerminal(status.Phase)) {
			wanted++
		}
	}
	pod := w.addOther(n, fmt.Sprintf("server-%d", len(w.others)))
	rejected := n.get(pod).Phase == v1.PodFailed
	if rejected && wanted < room {
		w.problem("a pod was rejected beside %d of %d: %s", wanted, room, n.get(pod).Message)
	}
	if !rejected && running >= room {
		w.problem("a pod was admitted beside %d of %d", running, room)
	}
}

// check looks at the pod between two steps.
func (w *watcher) check(n *node, after string) {
	got, ok := n.status.GetPodStatus(w.pod.UID)
	if !ok {
		return
	}
	terminal := podstatus.IsTerminal(got.Phase)
	ready := podstatus.FindCondition(got.Conditions, v1.PodReady)
	if terminal && ready != nil && ready.Status == v1.ConditionTrue {
		w.problem("after %s: the pod is %s and ready", after, got.Phase)
	}
	var running []string
	if found, err := n.rt.Pod(n.t.Context(), w.pod.UID); err == nil {
		for _, c := range found.Containers {
			if c.State == runtime.Running {
				running = append(running, c.Name)
			}
		}
	}
	if len(running) > 0 && !n.workers.CouldHaveRunningContainers(w.pod) {
		w.problem("after %s: %q run, and the workers deny it", after, running)
	}
	w.mu.Lock()
	w.ended = w.ended || terminal
	w.mu.Unlock()
}

func TestWhateverHappensAPodKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLife(rt)
		var problems []string
		synctest.Test(t, func(t *testing.T) { problems = l.tell(t) })
		if len(problems) > 0 {
			rt.Fatalf("%s\nstory: %+v", strings.Join(problems, "\n"), l)
		}
	})
}

// tell lives the life and returns what went wrong.
func (l life) tell(t *testing.T) []string {
	m := newMachine()
	pod := l.pod()
	w := &watcher{uid: pod.UID, spec: pod.Spec, pod: pod, rt: m.rt, life: l, attempts: map[string]int{}, boots: map[string]int{}}
	m.rt.Script(w.start)
	n := m.run(t, quiet, threeFit)
	n.workers.SourcesReady()
	n.update(w.pod)
	for i := range l.servers {
		w.addOther(n, fmt.Sprintf("server%d", i))
	}
	for i := range l.jobs {
		w.addOther(n, fmt.Sprintf("job%d", i))
		n.sleep(time.Second)
	}
	gone := false
	for _, s := range l.steps {
		n = l.happens(t, n, w, s, &gone)
		n.sleep(s.wait)
		w.check(n, s.what)
	}
	w.checkProgress(n)
	// In the end all are deleted, and nothing is left.
	for _, pod := range w.others {
		n.remove(pod)
	}
	n.rt.Script(w.start)
	w.setEnded()
	n.remove(w.pod)
	n.sleep(2 * time.Hour)
	if all, _ := n.rt.Pods(t.Context()); len(all) > 0 {
		w.problem("after the end the runtime still has %+v", all)
	}
	if n.workers.CouldHaveRunningContainers(w.pod) {
		w.problem("after the end the pod is said to have running containers")
	}
	n.stop()
	return w.problems
}

// threeFit makes a node on which three of the other pods fit.
func threeFit(o *worker.Options) {
	small := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1900m")}}}
	o.Admit = func(pod *v1.Pod, active []*v1.Pod) *fit.Rejection { return fit.Check(small, pod, active) }
}

// checkProgress checks that no clock holds a container back that is to run again.
func (w *watcher) checkProgress(n *node) {
	if w.ended || w.life.policy != v1.RestartPolicyAlways {
		return
	}
	before := maps.Clone(w.attempts)
	n.sleep(11 * time.Minute)
	for _, c := range w.pod.Spec.Containers {
		if n.newest(w.pod, c.Name).State != runtime.Running && w.attempts[c.Name] == before[c.Name] {
			w.problem("container %s was not started for 11 minutes: %s", c.Name, describe(n.container(w.pod, c.Name)))
		}
	}
}

func quiet(o *worker.Options) { o.Logger = nil }

func (w *watcher) setEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

func (l life) happens(t *testing.T, n *node, w *watcher, s step, gone *bool) *node {
	found, _ := n.rt.Pod(t.Context(), w.pod.UID)
	alive := slices.DeleteFunc(found.Containers, func(c runtime.Container) bool { return c.State != runtime.Running })
	switch s.what {
	case "exit":
		if len(alive) > 0 {
			n.rt.Exit(alive[s.pick%len(alive)].ID, runtimefake.Exit{Code: s.code})
		}
	case "unhealthy":
		if len(alive) > 0 {
			n.workers.ContainerUnhealthy(w.pod.UID, alive[s.pick%len(alive)].ID, runtime.LivenessProbe)
		}
	case "vanish":
		if len(alive) == 0 { // nothing that runs may vanish: it would run on unseen
			n.rt.Vanish(w.pod.UID)
		}
	case "fail start":
		w.mu.Lock()
		w.failing++
		w.mu.Unlock()
		n.rt.Fail("StartContainer", fmt.Errorf("no luck"))
	case "fail look":
		n.rt.Fail("Pod", fmt.Errorf("no luck"))
	case "fail stop":
		n.rt.Fail("StopContainer", fmt.Errorf("no luck"))
	case "delete":
		w.setEnded()
		w.pod = w.pod.DeepCopy()
		if !*gone {
			w.pod = n.delete(w.pod, s.grace)
		}
	case "remove":
		w.setEnded()
		*gone = true
		n.remove(w.pod)
	case "clock":
		n.rt.SetClock(s.clock)
	case "newcomer":
		w.newcomer(n)
	case "restart", "reboot":
		if status, ok := n.status.GetPodStatus(w.pod.UID); ok {
			w.pod = w.pod.DeepCopy()
			w.pod.Status = status // the API has it by now
		}
		n.stop()
		if s.what == "reboot" {
			w.boot++
			n.rt.Reboot()
			n.rt.SetClock(s.clock)
		}
		n = n.machine.run(t, quiet, threeFit)
		if s.pick%2 == 0 { // a pod comes before those of the earlier process are named
			w.newcomer(n)
		}
		for _, pod := range w.others {
			n.update(pod)
		}
		if !*gone {
			n.update(w.pod)
		}
		n.workers.SourcesReady()
	}
	synctest.Wait()
	return n
}
