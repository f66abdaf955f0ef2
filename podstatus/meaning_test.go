package podstatus_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// allOf is the one list in which callers hand over init and regular statuses.
func allOf(s *v1.PodStatus) []v1.ContainerStatus {
	return slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
}

// drawID draws an ID that some container has, or none.
func drawID(t *rapid.T, s *v1.PodStatus) string {
	ids := []string{"c://gone"}
	for _, c := range allOf(s) {
		ids = append(ids, c.ContainerID)
	}
	return rapid.SampledFrom(ids).Draw(t, "id")
}

func TestProperty_NothingWritesIntoItsInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		old, incoming := drawReport(t, pod), drawReport(t, pod)
		pod.Status = *drawReport(t, pod)
		id := drawID(t, old)
		podBefore, oldBefore, incomingBefore := pod.DeepCopy(), old.DeepCopy(), incoming.DeepCopy()

		all := allOf(incoming)
		_ = podrules.CheckTransitions(pod, old, incoming)
		_ = podrules.InitMismatch(pod, old)
		podstatus.ContainersReady(pod, all, incoming.Phase)
		podstatus.Ready(pod, incoming.Conditions, all, incoming.Phase)
		podstatus.Initialized(pod, old, all, incoming.Phase)
		podrules.AllContainersRestarting(pod, old, all, incoming.Phase)
		podrules.NeedsReadinessReconcile(pod, incoming)
		podstatus.Phase(pod, all, true, false)
		podrules.WithContainerReady(pod, old, id, true, noon)
		podrules.WithContainerReady(pod, old, id, false, noon)
		podrules.WithContainerStarted(pod, old, id, true, noon)
		podrules.WithContainerStarted(pod, old, id, false, noon)
		podrules.Terminate(pod, old, nil)
		podrules.Terminate(pod, nil, observing(map[string]int32{id: 0}))
		podrules.NewlyTerminated(old, incoming)
		podstatus.ResizeConditionsOf(old.Conditions)

		for _, pair := range [][2]any{{pod, podBefore}, {old, oldBefore}, {incoming, incomingBefore}} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Fatalf("an input was written: it is\n%+v\nand was\n%+v", pair[0], pair[1])
			}
		}
	})
}

func TestProperty_ATerminalPodIsNeverReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		status := drawReport(t, pod)
		ready := podstatus.Ready(pod, status.Conditions, allOf(status), status.Phase)
		containers := podstatus.ContainersReady(pod, allOf(status), status.Phase)
		if ready.Status == v1.ConditionTrue && containers.Status != v1.ConditionTrue {
			t.Fatalf("ready without its containers: %s, %s", describe(ready), describe(containers))
		}
		if podstatus.IsTerminal(status.Phase) && containers.Status == v1.ConditionTrue {
			t.Fatalf("phase %s with %s", status.Phase, describe(containers))
		}
	})
}

func TestProperty_AStatusMayFollowItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		status := drawReport(t, pod)
		if err := podrules.CheckTransitions(pod, status, status.DeepCopy()); err != nil {
			t.Fatalf("the same status again: %v", err)
		}
	})
}

func TestProperty_TerminateEndsOnceAndForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		cached := drawReport(t, pod)
		seen := observing(map[string]int32{drawID(t, cached): drawExitCode(t)})
		ended := podrules.Terminate(pod, cached, seen)
		again := podrules.Terminate(pod, &ended, seen)

		if err := podrules.CheckTransitions(pod, cached, &ended); err != nil {
			t.Fatalf("the end may not follow what was before: %v", err)
		}
		if !podstatus.IsStatic(pod) && !podstatus.IsTerminal(ended.Phase) {
			t.Fatalf("phase after the end: %s", ended.Phase)
		}
		if podstatus.IsTerminal(cached.Phase) && ended.Phase != cached.Phase {
			t.Fatalf("left the terminal phase %s for %s", cached.Phase, ended.Phase)
		}
		if again.Phase != ended.Phase {
			t.Fatalf("ended again: phase %s, was %s", again.Phase, ended.Phase)
		}
		ready := podstatus.FindCondition(ended.Conditions, v1.PodReady)
		if podstatus.IsTerminal(ended.Phase) && ready != nil && ready.Status == v1.ConditionTrue {
			t.Fatalf("phase %s with %s", ended.Phase, describe(*ready))
		}
		for _, c := range allOf(&ended) {
			if c.State.Running != nil {
				t.Fatalf("%s still runs in %s", c.Name, describeStates(allOf(&ended)))
			}
		}
	})
}

func TestProperty_FlipsAgreeWithTheGenerators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		cached := drawReport(t, pod)
		id, ready := drawID(t, cached), rapid.Bool().Draw(t, "value")
		got, flip := podrules.WithContainerReady(pod, cached, id, ready, noon)
		if flip != podrules.Flipped {
			if !reflect.DeepEqual(&got, cached) {
				t.Fatalf("%v, yet the status differs", flip)
			}
			return
		}
		for _, want := range []v1.PodCondition{
			podstatus.Ready(pod, cached.Conditions, allOf(&got), cached.Phase),
			podstatus.ContainersReady(pod, allOf(&got), cached.Phase),
		} {
			want.LastTransitionTime = podrules.TransitionTime(cached, &want, noon)
			if c := podstatus.FindCondition(got.Conditions, want.Type); c == nil || *c != want {
				t.Fatalf("got %+v, want %+v", c, want)
			}
		}
		back, _ := podrules.WithContainerReady(pod, &got, id, !ready, noon.Add(time.Minute))
		if !reflect.DeepEqual(allOf(&back), allOf(cached)) {
			t.Fatalf("flipped there and back: got %v, want %v", allOf(&back), allOf(cached))
		}
	})
}

func TestProperty_StartupFlipSetsOneFieldOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		cached := drawReport(t, pod)
		id, started := drawID(t, cached), rapid.Bool().Draw(t, "value")
		got, flip := podrules.WithContainerStarted(pod, cached, id, started, noon)
		want := cached.DeepCopy()
		if flip == podrules.Flipped {
			for _, list := range [][]v1.ContainerStatus{want.InitContainerStatuses, want.ContainerStatuses} {
				for i := range list {
					if list[i].ContainerID == id {
						list[i].Started = &started
					}
				}
			}
		}
		if !reflect.DeepEqual(&got, want) {
			t.Fatalf("%v of %s to %t: got\n%+v\nwant\n%+v", flip, id, started, &got, want)
		}
	})
}

func TestProperty_PhaseDoesNotDependOnTheOrderOfStatuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		all := allOf(drawReport(t, pod))
		terminal, initialized := rapid.Bool().Draw(t, "terminal"), rapid.Bool().Draw(t, "initialized")
		want := podstatus.Phase(pod, all, terminal, initialized)
		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		if got := podstatus.Phase(pod, shuffled, terminal, initialized); got != want {
			t.Fatalf("%s is %s, and in another order %s", describeStates(all), want, got)
		}
	})
}

func TestProperty_NoTerminalPhaseWhileAContainerRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		// A failed init container fails the pod at once, whatever is said about the rest.
		pod.Spec.InitContainers = slices.DeleteFunc(pod.Spec.InitContainers, func(c v1.Container) bool {
			return !podstatus.IsSidecar(&c)
		})
		all := allOf(drawReport(t, pod))
		phase := podstatus.Phase(pod, all, rapid.Bool().Draw(t, "terminal"), rapid.Bool().Draw(t, "initialized"))
		for _, c := range all {
			if c.State.Running != nil && c.Name != "ghost" && podstatus.IsTerminal(phase) {
				t.Fatalf("%s while %s runs: %s", phase, c.Name, describeStates(all))
			}
		}
	})
}

func TestProperty_ResizeConditionsSurviveAStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r podstatus.ResizeConditions
		for i := range rapid.IntRange(1, 8).Draw(t, "steps") {
			now := noon.Add(time.Duration(i) * time.Second)
			reason := rapid.SampledFrom([]string{"", v1.PodReasonDeferred, v1.PodReasonInfeasible, v1.PodReasonError}).Draw(t, "reason")
			generation := rapid.Int64Range(1, 3).Draw(t, "generation")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				r, _ = r.SetPending(reason, "", generation, now)
			case 1:
				r, _, _ = r.SetInProgress(reason, "", generation, now)
			case 2:
				r, _ = r.ClearPending()
			case 3:
				r, _, _ = r.ClearInProgress()
			}
			if back := podstatus.ResizeConditionsOf(r.List()); !reflect.DeepEqual(back, r) {
				t.Fatalf("read back: got %+v, want %+v", back, r)
			}
			if r.IsZero() != (len(r.List()) == 0) {
				t.Fatalf("zero is %t, and the list is %v", r.IsZero(), r.List())
			}
		}
	})
}
