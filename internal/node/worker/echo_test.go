package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/probe"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// trace records the calls that cross from one package into another.
type trace struct {
	mu    sync.Mutex
	calls []string
}

func (t *trace) add(call string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, call)
}

// take returns the calls since the last time, and how many turns of a worker were among them.
func (t *trace) take() (calls string, turns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls, turns = strings.Join(t.calls, " "), strings.Count(strings.Join(t.calls, " "), "runtime.Pod")
	t.calls = nil
	return calls, turns
}

// tracedRuntime, tracedStatus and tracedProber are the collaborators of a worker.
type tracedRuntime struct {
	*runtimefake.Runtime
	*trace
}

func (r tracedRuntime) Pod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	r.add("runtime.Pod")
	return r.Runtime.Pod(ctx, uid)
}

type tracedStatus struct {
	reporter
	*trace
}

func (s tracedStatus) GetPodStatus(uid types.UID) (v1.PodStatus, bool) {
	s.add("status.GetPodStatus")
	return s.Manager.GetPodStatus(uid)
}

func (s tracedStatus) SetPodStatus(pod *v1.Pod, status v1.PodStatus) (bool, error) {
	s.add("status.SetPodStatus")
	return s.Manager.SetPodStatus(pod, status)
}

func (s tracedStatus) GetPodResizeConditions(uid types.UID) []v1.PodCondition {
	s.add("status.GetPodResizeConditions")
	return s.reporter.GetPodResizeConditions(uid)
}

func (s tracedStatus) ClearPodResizePendingCondition(uid types.UID) {
	s.add("status.ClearPodResizePendingCondition")
	s.reporter.ClearPodResizePendingCondition(uid)
}

func (s tracedStatus) SetContainerReadiness(uid types.UID, id string, ready bool) error {
	s.add("status.SetContainerReadiness")
	return s.Manager.SetContainerReadiness(uid, id, ready)
}

func (s tracedStatus) SetContainerStartup(uid types.UID, id string, started bool) error {
	s.add("status.SetContainerStartup")
	return s.Manager.SetContainerStartup(uid, id, started)
}

type tracedProber struct {
	*probe.Prober
	*trace
}

func (p tracedProber) AddPod(pod *v1.Pod) {
	p.add("probe.AddPod")
	p.Prober.AddPod(pod)
}

func (p tracedProber) UpdatePodStatus(pod *v1.Pod, status *v1.PodStatus) {
	p.add("probe.UpdatePodStatus")
	p.Prober.UpdatePodStatus(pod, status)
}

// traced runs a story on a node with a real prober whose calls, and those of the workers,
// are recorded. Exec probes pass while healthy is true.
func traced(t *testing.T, tell func(n *node, tr *trace, healthy *atomic.Bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, tr, healthy := newMachine(), &trace{}, &atomic.Bool{}
		healthy.Store(true)
		m.rt.ExecWith(func(context.Context, runtime.Container, []string) (runtime.ExecResult, error) {
			if healthy.Load() {
				return runtime.ExecResult{}, nil
			}
			return runtime.ExecResult{ExitCode: 1}, nil
		})
		var workers *worker.Workers
		var prober *probe.Prober
		n := m.run(t, func(o *worker.Options) {
			manager := tracedStatus{o.Status.(reporter), tr}
			var err error
			prober, err = probe.New(probe.Options{
				Exec: m.rt.Exec, Status: manager,
				Unhealthy: func(f probe.Failure) { workers.ContainerUnhealthy(f.Pod, f.ContainerID, f.Kind) },
				Sync: func(uid types.UID) {
					tr.add("worker.Sync")
					workers.Sync(uid)
				},
				Spread: func(time.Duration) time.Duration { return 0 },
			})
			if err != nil {
				t.Fatal(err)
			}
			o.Runtime, o.Status, o.Prober = tracedRuntime{m.rt, tr}, manager, tracedProber{prober, tr}
		})
		workers = n.workers
		ctx, cancel := context.WithCancel(t.Context())
		var probing sync.WaitGroup
		probing.Go(func() { _ = prober.Run(ctx) })
		n.workers.SourcesReady()
		tell(n, tr, healthy)
		n.stop()
		cancel()
		probing.Wait()
	})
}

// echo is the watch event that follows a write of the node's own.
func (n *node) echo(pod *v1.Pod) *v1.Pod {
	copied := pod.DeepCopy()
	copied.Status = n.get(pod)
	var version int
	_, _ = fmt.Sscan(copied.ResourceVersion, &version)
	copied.ResourceVersion = fmt.Sprint(version + 1)
	n.update(copied)
	return copied
}

func probed(name string) *v1.Pod {
	check := v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"check"}}}
	pod := newPod(name, v1.Container{Name: "main", ReadinessProbe: &v1.Probe{ProbeHandler: check, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 1}})
	pod.ResourceVersion = "1"
	return pod
}

// TestAReadinessFlipCostsNoTurn counts what one readiness flip and the watch's echo of the
// write that follows from it cost: a turn finds nothing to do in either.
func TestAReadinessFlipCostsNoTurn(t *testing.T) {
	traced(t, func(n *node, tr *trace, healthy *atomic.Bool) {
		pod := probed("web")
		n.update(pod)
		n.sleep(15 * time.Second)
		pod = n.echo(pod)
		for _, ready := range []bool{false, true} {
			n.sleep(0)
			tr.take()
			healthy.Store(ready)
			n.sleep(10 * time.Second)
			if got := podstatus.FindCondition(n.get(pod).Conditions, v1.PodReady); (got.Status == v1.ConditionTrue) != ready {
				t.Fatalf("Ready is %s, want %t", got.Status, ready)
			}
			pod = n.echo(pod)
			calls, turns := tr.take()
			if turns != 0 || calls != "status.SetContainerReadiness" {
				t.Errorf("ready %t: %d turns, %d calls across packages, want 0 and 1: %s", ready, turns, 1+strings.Count(calls, " "), calls)
			}
		}
	})
}

// TestUpdatesThatNeedATurn changes one thing of a pod at a time, beside the status that the
// node has written itself: what a worker acts on wakes it, anything else does not.
func TestUpdatesThatNeedATurn(t *testing.T) {
	gate := func(status v1.ConditionStatus) v1.PodCondition {
		return v1.PodCondition{Type: "example.com/lb", Status: status}
	}
	for _, c := range []struct {
		story  string
		change func(*v1.Pod)
		turn   bool
	}{
		{"nothing", func(*v1.Pod) {}, false},
		{"managed fields", func(p *v1.Pod) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "statusd"}} }, false},
		{"an owned condition that another writer has changed", func(p *v1.Pod) {
			podstatus.FindCondition(p.Status.Conditions, v1.PodReady).Status = v1.ConditionFalse
		}, false},
		{"a container status that another writer has changed", func(p *v1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 7 }, false},
		{"a spec", func(p *v1.Pod) { p.Spec.Containers[0].Image = "other" }, true},
		{"a generation alone", func(p *v1.Pod) { p.Generation++ }, true},
		{"resources", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		}, true},
		{"an ephemeral container", func(p *v1.Pod) {
			p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
		}, true},
		{"an annotation", func(p *v1.Pod) { p.Annotations = map[string]string{"a": "2"} }, true},
		{"a label", func(p *v1.Pod) { p.Labels = map[string]string{"a": "2"} }, true},
		{"a deletion", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true},
		{"a shorter grace", func(p *v1.Pod) { p.DeletionGracePeriodSeconds = new(int64(1)) }, true},
		{"the condition of a gate", func(p *v1.Pod) { p.Status.Conditions = append(p.Status.Conditions, gate(v1.ConditionTrue)) }, true},
		{"a disruption", func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue})
		}, true},
		{"an end that another writer has set", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, true},
	} {
		t.Run(c.story, func(t *testing.T) {
			traced(t, func(n *node, tr *trace, _ *atomic.Bool) {
				pod := probed("web")
				n.update(pod)
				n.sleep(15 * time.Second)
				pod = n.echo(pod)
				n.sleep(0)
				tr.take()
				changed := pod.DeepCopy()
				changed.ResourceVersion = "9"
				c.change(changed)
				n.update(changed)
				if _, turns := tr.take(); (turns > 0) != c.turn {
					t.Errorf("%d turns, want one: %t", turns, c.turn)
				}
			})
		})
	}
}

// TestAResizeIsSeenThroughAnEcho stores an echo of the new spec while the turn that has to
// decide on the resize is under way.
func TestAResizeIsSeenThroughAnEcho(t *testing.T) {
	echo := func() {}
	story(t, func(n *node) {
		pod := newPod("web", v1.Container{Name: "main"})
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		n.update(pod)
		resized := pod.DeepCopy()
		resized.Generation++
		resized.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
		echo = sync.OnceFunc(func() {
			again := resized.DeepCopy()
			again.ResourceVersion = "2"
			n.workers.Update(again)
		})
		n.update(resized)
		allocated, _ := n.status.Resizes().GetPodAllocation(pod.UID)
		cpu := allocated.Containers["main"].Requests[v1.ResourceCPU]
		if cpu.Cmp(resource.MustParse("2")) != 0 {
			t.Errorf("allocated %s, want 2: the resize was overlooked", cpu.String())
		}
	}, func(o *worker.Options) { o.Runtime = echoing{o.Runtime.(*runtimefake.Runtime), func() { echo() }} })
}

// echoing calls a function whenever a turn looks at a pod.
type echoing struct {
	*runtimefake.Runtime
	look func()
}

func (r echoing) Pod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	r.look()
	return r.Runtime.Pod(ctx, uid)
}

// TestAProbeResultIsNotLostToAReport lets a probe pass just before a report is stored that
// was made without its result. No turn follows that would repair it.
func TestAProbeResultIsNotLostToAReport(t *testing.T) {
	probes := newProber()
	probes.set(map[string]bool{"main": true}, nil)
	overtake := &overtaking{}
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		id := n.container(pod, "main").ContainerID
		overtake.set(func() {
			probes.set(map[string]bool{"main": true}, map[string]bool{"main": true})
			if err := n.status.SetContainerReadiness(pod.UID, id, true); err != nil {
				t.Error(err)
			}
		})
		n.workers.Sync(pod.UID)
		synctest.Wait()
		if !n.container(pod, "main").Ready {
			t.Error("the container is not ready though its probe has passed")
		}
	}, func(o *worker.Options) {
		overtake.Status = o.Status
		o.Status, o.Prober = overtake, probes
	})
}

// overtaking calls a function once, before it stores a status.
type overtaking struct {
	worker.Status
	mu   sync.Mutex
	call func()
}

func (o *overtaking) set(call func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.call = call
}

func (o *overtaking) SetPodStatus(pod *v1.Pod, status v1.PodStatus) (bool, error) {
	o.mu.Lock()
	call := o.call
	o.call = nil
	o.mu.Unlock()
	if call != nil {
		call()
	}
	return o.Status.SetPodStatus(pod, status)
}

func TestOnForgottenIsCalledOncePerPod(t *testing.T) {
	var mu sync.Mutex
	var forgotten []types.UID
	story(t, func(n *node) {
		pod, unknown := newPod("web"), newPod("unknown")
		n.update(pod)
		n.remove(pod)
		mu.Lock()
		if len(forgotten) > 0 {
			t.Errorf("%v forgotten while containers end", forgotten)
		}
		mu.Unlock()
		n.remove(unknown)
		n.sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(forgotten, []types.UID{unknown.UID, pod.UID}) {
			t.Errorf("forgotten: %v, want each once", forgotten)
		}
	}, func(o *worker.Options) {
		o.Runtime.(*runtimefake.Runtime).Script(func(*v1.Pod, *v1.Container, int) runtimefake.Behavior {
			return runtimefake.Behavior{StopsAfter: 5 * time.Second}
		})
		o.OnForgotten = func(uid types.UID) {
			mu.Lock()
			defer mu.Unlock()
			forgotten = append(forgotten, uid)
		}
	})
}

// updated records the pods that a runtime is given while they run, as for downward API volumes.
type updated struct {
	*runtimefake.Runtime
	mu   sync.Mutex
	pods []*v1.Pod
}

func (u *updated) UpdatePod(pod *v1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pods = append(u.pods, pod)
}

func (u *updated) take() []*v1.Pod {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.pods
	u.pods = nil
	return taken
}

// TestVolumesFollowMetadataThroughEchoes changes an annotation that a downward API volume
// shows, with echoes before and after it.
func TestVolumesFollowMetadataThroughEchoes(t *testing.T) {
	rt := &updated{}
	story(t, func(n *node) {
		pod := newPod("web")
		pod.ResourceVersion = "1"
		n.update(pod)
		pod = n.echo(pod)
		rt.take()
		n.echo(pod)
		if got := rt.take(); len(got) > 0 {
			t.Errorf("an echo gave the runtime %d pods, want none", len(got))
		}
		annotated := pod.DeepCopy()
		annotated.Annotations = map[string]string{"config": "v2"}
		n.update(annotated)
		got := rt.take()
		if len(got) == 0 || got[len(got)-1].Annotations["config"] != "v2" {
			t.Errorf("the runtime was given %d pods, want one with the annotation", len(got))
		}
	}, func(o *worker.Options) {
		rt.Runtime = o.Runtime.(*runtimefake.Runtime)
		o.Runtime = rt
	})
}

// TestGenerationsAndGatesAreActedOn follows a pod through a change of its generation, of a
// readiness gate, and through a restart of the process.
func TestGenerationsAndGatesAreActedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		n := m.run(t)
		n.workers.SourcesReady()
		pod := newPod("web")
		pod.ResourceVersion, pod.Spec.ReadinessGates = "1", []v1.PodReadinessGate{{ConditionType: "example.com/lb"}}
		n.update(pod)
		pod = n.echo(pod)
		want := func(what string, generation int64, ready v1.ConditionStatus) {
			t.Helper()
			got := n.get(pod)
			if c := podstatus.FindCondition(got.Conditions, v1.PodReady); got.ObservedGeneration != generation || c.Status != ready {
				t.Errorf("%s: generation %d, Ready %s, want %d and %s", what, got.ObservedGeneration, c.Status, generation, ready)
			}
		}
		want("at first", 1, v1.ConditionFalse)
		pod = pod.DeepCopy()
		pod.Generation = 2
		n.update(pod)
		want("a new generation", 2, v1.ConditionFalse)
		pod = n.echo(pod).DeepCopy()
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: "example.com/lb", Status: v1.ConditionTrue})
		n.update(pod)
		want("the gate opens", 2, v1.ConditionTrue)
		n.stop()

		n = m.run(t)
		pod = pod.DeepCopy()
		pod.Generation = 3
		n.update(pod)
		n.workers.SourcesReady()
		n.sleep(0)
		want("changed while the process was down", 3, v1.ConditionTrue)
		pod = pod.DeepCopy()
		pod.Status.Conditions = nil
		n.update(pod)
		want("the gate is gone", 3, v1.ConditionFalse)
		n.stop()
	})
}
