package worker_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// cpus makes the pod ask for so much.
func cpus(pod *v1.Pod, request, limit string) *v1.Pod {
	resized := pod.DeepCopy()
	resized.Generation++
	r := v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(request)}}
	if limit != "" {
		r.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse(limit)}
	}
	resized.Spec.Containers[0].Resources = r
	return resized
}

// resizeState is how a resize stands: "allocated 100m, limit 1; Deferred: message".
func (n *node) resizeState(pod *v1.Pod) string {
	n.t.Helper()
	c, status := n.container(pod, "main"), n.get(pod)
	state := "allocated " + c.AllocatedResources.Cpu().String()
	if c.Resources != nil && !c.Resources.Limits.Cpu().IsZero() {
		state += ", limit " + c.Resources.Limits.Cpu().String()
	}
	if pending := podstatus.FindCondition(status.Conditions, v1.PodResizePending); pending != nil {
		state += "; " + pending.Reason + ": " + pending.Message
	}
	if doing := podstatus.FindCondition(status.Conditions, v1.PodResizeInProgress); doing != nil {
		state += "; in progress " + doing.Reason + doing.Message
	}
	return state
}

func (n *node) wantResize(pod *v1.Pod, what, want string) {
	n.t.Helper()
	if got := n.resizeState(pod); got != want {
		n.t.Errorf("%s (after %s): pod %s is %q, want %q", what, time.Since(n.begin), pod.Name, got, want)
	}
}

func TestAResizeThatTheNodeCannotTakeIsInfeasible(t *testing.T) {
	story(t, func(n *node) {
		pod := cpus(newPod("web"), "100m", "")
		n.update(pod)
		n.update(cpus(pod, "1000", "1000"))
		n.wantResize(pod, "resized", "allocated 100m; Infeasible: Node didn't have enough capacity: cpu, requested: 1000000, capacity: 1000")
		other := cpus(newPod("other"), "600m", "")
		n.update(other)
		n.wantPhase(other, "a pod that comes later", v1.PodRunning)
		if got := n.rt.Resources("fake://1"); !got.Limits.Cpu().IsZero() {
			t.Errorf("the container was given limits %v", got.Limits)
		}
		n.update(cpus(pod, "100m", ""))
		n.wantResize(pod, "taken back", "allocated 100m")
	}, smallNode)
}

func TestAResizeThatDoesNotFitWaitsForRoom(t *testing.T) {
	story(t, func(n *node) {
		first, second := cpus(newPod("first"), "400m", "500m"), cpus(newPod("second"), "400m", "")
		n.update(first)
		n.update(second)
		n.update(cpus(first, "800m", "900m"))
		n.wantResize(first, "beside the second", "allocated 400m, limit 500m; Deferred: Node didn't have enough resource: cpu, requested: 800, used: 400, capacity: 1000")
		if !slicesContainsPrefix(n.events.all, `ResizeDeferred: Pod resize Deferred: {"containers":[{"name":"main","resources":{"limits":{"cpu":"900m"},"requests":{"cpu":"800m"}}}],"generation":3,"error":"Node didn't`) {
			t.Errorf("events: got %q, want ResizeDeferred with the resources", n.events.all)
		}
		n.delete(second, 0)
		n.sleep(time.Second)
		n.wantResize(first, "when the second has ended", "allocated 800m, limit 900m")
		limits := n.rt.Resources("fake://1").Limits
		if got := limits.Cpu().String(); got != "900m" {
			t.Errorf("the container has a limit of %s, want 900m", got)
		}
		for _, want := range []string{"ResizeStarted: Pod resize started: ", "ResizeCompleted: Pod resize completed: "} {
			if !slicesContainsPrefix(n.events.all, want) {
				t.Errorf("events: got %q, want %s", n.events.all, want)
			}
		}
		n.wantStarts("without a restart", "main/0", "main/0")
	}, smallNode)
}

func slicesContainsPrefix(all []string, prefix string) bool {
	for _, s := range all {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

func TestResizesAreGrantedInTheOrderOfTheKubelet(t *testing.T) {
	story(t, func(n *node) {
		for _, name := range []string{"early", "late", "important", "smaller"} {
			pod := cpus(newPod(name), "200m", "")
			if name == "important" {
				pod.Spec.Priority = new(int32(1000))
			}
			n.update(pod)
		}
		resize := func(name, to string) {
			pod := cpus(newPod(name), to, "")
			if name == "important" {
				pod.Spec.Priority = new(int32(1000))
			}
			n.update(pod)
			n.sleep(time.Second)
		}
		resize("early", "500m")
		resize("late", "500m")
		resize("important", "500m")
		n.wantResize(newPod("important"), "without room", "allocated 200m; Deferred: Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000")
		resize("smaller", "10m") // makes room for one of them at 500m: 1000 - 10 - 200 - 200 = 590
		n.wantResize(newPod("smaller"), "in the end", "allocated 10m")
		n.wantResize(newPod("important"), "in the end", "allocated 500m")
		n.wantResize(newPod("early"), "in the end", "allocated 200m; Deferred: Node didn't have enough resource: cpu, requested: 500, used: 710, capacity: 1000")
		n.delete(newPod("important"), 0)
		n.sleep(time.Second)
		n.wantResize(newPod("early"), "the one that waits longer", "allocated 500m")
		n.wantResize(newPod("late"), "the other one", "allocated 200m; Deferred: Node didn't have enough resource: cpu, requested: 500, used: 510, capacity: 1000")
	}, func(o *worker.Options) {
		node := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}
		o.Admit = func(pod *v1.Pod, active []*v1.Pod) *fit.Rejection { return fit.Check(node, pod, active) }
	})
}

// plain hides what the fake can do beside the minimum.
type plain struct{ runtime.Runtime }

func TestLimitsThatTheRuntimeCannotChangeAreInfeasible(t *testing.T) {
	story(t, func(n *node) {
		pod := cpus(newPod("web"), "100m", "")
		n.update(pod)
		n.update(cpus(pod, "100m", "200m"))
		n.wantResize(pod, "limits", "allocated 100m; Infeasible: these limits cannot be changed while the pod runs on this node")
		n.update(cpus(pod, "200m", ""))
		n.wantResize(pod, "requests", "allocated 200m")
	}, smallNode, func(o *worker.Options) { o.Runtime = plain{o.Runtime} })
}

func TestAResizeThatFailsIsRetriedAndSaid(t *testing.T) {
	story(t, func(n *node) {
		pod := cpus(newPod("web"), "100m", "200m")
		n.update(pod)
		n.rt.Fail("ResizeContainer", errors.New("no such group"))
		n.update(cpus(pod, "100m", "300m"))
		n.wantResize(pod, "at first", "allocated 100m, limit 200m; in progress Errorfailed to resize container main: no such group")
		n.sleep(10 * time.Second)
		n.wantResize(pod, "later", "allocated 100m, limit 300m")
	}, smallNode)
}

func TestAResizeRestartsAContainerThatAsksForIt(t *testing.T) {
	story(t, func(n *node) {
		pod := cpus(newPod("web"), "100m", "200m")
		pod.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceCPU, RestartPolicy: v1.RestartContainer}}
		n.update(pod)
		n.update(cpus(pod, "100m", "300m"))
		n.wantStarts("resized", "main/0", "main/1")
		n.wantResize(pod, "restarted", "allocated 100m, limit 300m")
		if want := "main Killing: Container main resize requires restart"; !n.events.has(want) {
			t.Errorf("got events %q, want %q", n.events.all, want)
		}
	}, smallNode)
}

// What was allocated counts after a restart too, not what the spec asks for meanwhile.
func TestAResizeAskedForWhileTheProcessWasDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		pod := cpus(newPod("web"), "100m", "")
		before := m.run(t, smallNode)
		before.update(pod)
		pod.Status = before.get(pod)
		before.stop()
		after := m.run(t, smallNode)
		after.update(cpus(pod, "1000", ""))
		other := cpus(newPod("other"), "600m", "")
		after.update(other)
		after.wantPhase(other, "beside it", v1.PodRunning)
		after.wantResize(pod, "before the sources have spoken", "allocated 100m")
		after.workers.SourcesReady()
		synctest.Wait()
		after.wantResize(pod, "then", "allocated 100m; Infeasible: Node didn't have enough capacity: cpu, requested: 1000000, capacity: 1000")
		after.stop()
	})
}

func TestAPodThatHasEndedWaitsForNoResize(t *testing.T) {
	story(t, func(n *node) {
		pod := cpus(newPod("web"), "100m", "")
		n.update(pod)
		resized := cpus(pod, "1000", "")
		n.update(resized)
		n.wantResize(pod, "resized", "allocated 100m; Infeasible: Node didn't have enough capacity: cpu, requested: 1000000, capacity: 1000")
		n.delete(resized, 30)
		n.wantState(pod, "main", "in the end", "Terminated 143:Error")
		n.wantResize(pod, "in the end", "allocated 100m")
	}, smallNode)
}
