package status

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// standalone returns a manager without an API server that knows the pods.
func standalone(t *testing.T, known ...*v1.Pod) *Manager {
	t.Helper()
	table := pods.New()
	for _, pod := range known {
		table.Set(pod)
	}
	m, err := New(Options{Pods: table})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(Options{Workers: -1, QPS: -2})
	if err == nil {
		t.Fatal("bad options were taken")
	}
	for _, word := range []string{"Workers", "QPS"} {
		if !containsWord(err.Error(), word) {
			t.Errorf("the error %q does not name %s", err, word)
		}
	}
}

func containsWord(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i:i+len(word)] == word {
			return true
		}
	}
	return false
}

// Invariant 9, nothing aliased.
func TestU1_NothingIsAliased(t *testing.T) {
	pod := newPod("web")
	m := standalone(t, pod)
	status := running(pod, true)
	passed := status.DeepCopy()
	if _, err := m.SetPodStatus(pod, status); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&status, passed) {
		t.Errorf("SetPodStatus changed what it was given:\n got %+v\nwant %+v", status, *passed)
	}
	want := copyOf(m, pod)
	subscription := m.Subscribe()
	defer subscription.Close()

	scribble(&status)
	if got, _ := m.GetPodStatus(pod.UID); !reflect.DeepEqual(got, want) {
		t.Error("the cache was changed through a value that was passed in")
	}
	handedOut, _ := m.GetPodStatus(pod.UID)
	scribble(&handedOut)
	if got, _ := m.GetPodStatus(pod.UID); !reflect.DeepEqual(got, want) {
		t.Error("the cache was changed through a value that was handed out")
	}
	_, err := m.UpdatePodStatus(pod.UID, func(s *v1.PodStatus) { s.Message = "kept"; handedOut = *s })
	if err != nil {
		t.Fatal(err)
	}
	want = copyOf(m, pod)
	scribble(&handedOut)
	event, err := subscription.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scribble(&event.Status)
	if got, _ := m.GetPodStatus(pod.UID); !reflect.DeepEqual(got, want) {
		t.Error("the cache was changed through the status of an update or an event")
	}
}

// copyOf is a copy of the cached status that shares nothing, even if GetPodStatus does.
func copyOf(m *Manager, pod *v1.Pod) v1.PodStatus {
	status, _ := m.GetPodStatus(pod.UID)
	return *status.DeepCopy()
}

// scribble writes into everything that a status points to.
func scribble(s *v1.PodStatus) {
	for i := range s.Conditions {
		s.Conditions[i].Status, s.Conditions[i].Message = "scribbled", "scribbled"
	}
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		c.Name, *c.Started = "scribbled", false
		c.State.Running.StartedAt = metav1.Time{}
	}
	for i := range s.PodIPs {
		s.PodIPs[i].IP = "scribbled"
	}
	if s.StartTime != nil {
		s.StartTime.Time = time.Time{}
	}
}

func TestU2_ObservedGenerationIsThePods(t *testing.T) {
	pod := newPod("web", func(p *v1.Pod) { p.Generation = 7 })
	m := standalone(t, pod)
	status := running(pod, true)
	status.ObservedGeneration = 99
	if _, err := m.SetPodStatus(pod, status); err != nil {
		t.Fatal(err)
	}
	if got, _ := m.GetPodStatus(pod.UID); got.ObservedGeneration != 7 {
		t.Errorf("observed generation is %d, want the pod's 7", got.ObservedGeneration)
	}
}

func TestU3_ADeletedPodIsStoredAlsoIfNothingDiffers(t *testing.T) {
	pod := newPod("web", deleting)
	m := standalone(t, pod)
	for want := uint64(1); want <= 3; want++ {
		changed, err := m.SetPodStatus(pod, running(pod, true))
		if err != nil || !changed {
			t.Fatalf("SetPodStatus: %v, %v", changed, err)
		}
		if got := m.cache.load(pod.UID).version; got != want {
			t.Errorf("version is %d, want %d", got, want)
		}
	}
}

func TestU5_WithoutACachedStatusTheAPIsCounts(t *testing.T) {
	long := metav1.NewTime(time.Unix(500, 0))
	pod := newPod("web", func(p *v1.Pod) { p.Status.StartTime = &long })
	static := newPod("etcd", staticPod)
	mirror := mirrorOf(static, "mirror")
	mirror.Status.StartTime = &long
	m := standalone(t, pod, static, mirror)
	for _, p := range []*v1.Pod{pod, static} {
		if _, err := m.SetPodStatus(p, running(p, true)); err != nil {
			t.Fatal(err)
		}
		if got, _ := m.GetPodStatus(p.UID); !got.StartTime.Equal(&long) {
			t.Errorf("%s starts at %v, want the API's %v", p.Name, got.StartTime, long)
		}
	}
}

func TestU6_AnIllegalTransitionIsRefusedForAllToSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("job", restartNever)
		w.set(pod, ended(pod, 0))
		w.wantLog("ended", "PATCH ns/job")
		changed, err := w.manager.SetPodStatus(pod, running(pod, true))
		if _, ok := errors.AsType[*podstatus.TransitionError](err); !ok || changed {
			t.Errorf("a container came back from its end: %v, %v; want a TransitionError", changed, err)
		}
		w.wantLog("nothing is sent")
		if got := w.counter("statusd_pod_status_refused_total"); got != 1 {
			t.Errorf("%v refusals counted, want 1", got)
		}
	})
}

// Invariant 2, terminal is final: in the cache.
func TestTerminalPhaseIsNeverLeft(t *testing.T) {
	pod := newPod("web") // restart policy Always: the containers may come back, the phase may not
	m := standalone(t, pod)
	if _, err := m.SetPodStatus(pod, ended(pod, 1)); err != nil {
		t.Fatal(err)
	}
	_, err := m.SetPodStatus(pod, running(pod, true))
	if phase, ok := errors.AsType[*PhaseError](err); !ok || phase.Has != v1.PodFailed || phase.Wanted != v1.PodRunning {
		t.Errorf("leaving Failed gave %v, want a PhaseError", err)
	}
	if got, _ := m.GetPodStatus(pod.UID); got.Phase != v1.PodFailed {
		t.Errorf("phase is %s, want Failed", got.Phase)
	}
}

// A shutdown of the node reports its pods as Failed while their containers run, and the containers may then exit with 0. The
// API has not seen the first end, so that the second one counts, as with the kubelet. Nothing revises an end for good.
func TestWithheldEnd_IsRevisedByTheEndOfItsContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever)
		w.report(pod, running(pod, true))
		early := running(pod, true)
		early.Phase, early.Reason = v1.PodFailed, "Terminated"
		w.report(pod, early)
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodRunning {
			t.Errorf("the API says %s while a container runs", got)
		}
		_, err := w.manager.SetPodStatus(pod, running(pod, true))
		if _, refused := errors.AsType[*PhaseError](err); !refused {
			t.Errorf("leaving Failed gave %v, want a PhaseError", err)
		}
		w.report(pod, ended(pod, 0))
		if got := w.api.Pod(pod).Status; got.Phase != v1.PodSucceeded || got.Reason != "" {
			t.Errorf("the API says %s %s, want Succeeded", got.Phase, got.Reason)
		}
		_, err = w.manager.SetPodStatus(pod, ended(pod, 1))
		if _, refused := errors.AsType[*PhaseError](err); !refused {
			t.Errorf("leaving Succeeded gave %v, want a PhaseError", err)
		}
	})
}

// Invariant 1, monotonic: across removal and re-adding (V4).
func TestV4_VersionsGrowAcrossRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		for i := range 3 {
			status := running(pod, true)
			status.Message = fmt.Sprint(i)
			w.set(pod, status)
		}
		before := w.manager.cache.load(pod.UID).version
		w.manager.RemoveOrphanedStatuses(nil)
		if _, ok := w.manager.GetPodStatus(pod.UID); ok {
			t.Fatal("the orphan is still there")
		}
		synctest.Wait()
		w.api.ForgetRequests()
		status := running(pod, true)
		status.Message = "again"
		w.set(pod, status)
		if got := w.manager.cache.load(pod.UID).version; got <= before {
			t.Errorf("the re-added pod has version %d, want more than %d", got, before)
		}
		w.wantLog("the re-added pod is sent at once", "PATCH ns/web")
	})
}

func TestOrphansAreRemovedTheOthersStay(t *testing.T) {
	a, b := newPod("a"), newPod("b")
	m := standalone(t, a, b)
	for _, p := range []*v1.Pod{a, b} {
		if _, err := m.SetPodStatus(p, running(p, true)); err != nil {
			t.Fatal(err)
		}
		m.Resizes().SetPodResizePendingCondition(p.UID, "Deferred", "later", 1)
	}
	m.RemoveOrphanedStatuses(map[types.UID]bool{a.UID: false}) // O1: the value does not matter
	if _, ok := m.GetPodStatus(a.UID); !ok {
		t.Error("a is gone although it was named")
	}
	if _, ok := m.GetPodStatus(b.UID); ok {
		t.Error("b is still there although it was not named")
	}
	if got := m.Resizes().GetPodResizeConditions(b.UID); len(got) != 0 {
		t.Errorf("b still has resize conditions: %v", got)
	}
}

func TestH1_ReadinessOfTheUnknownIsAnErrorThatSaysSo(t *testing.T) {
	pod, silent := newPod("web"), newPod("silent")
	m := standalone(t, pod, silent)
	if _, err := m.SetPodStatus(pod, running(pod, false)); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name      string
		uid       types.UID
		container string
		want      error
	}{
		{"unknown pod", "unknown", "process://web-uid", ErrUnknownPod},
		{"pod without status", silent.UID, "process://silent-uid", ErrNoStatus},
		{"replaced container", pod.UID, "process://older", ErrUnknownContainer},
	}
	for _, c := range cases {
		if err := m.SetContainerReadiness(c.uid, c.container, true); !errors.Is(err, c.want) {
			t.Errorf("%s: SetContainerReadiness gave %v, want %v", c.name, err, c.want)
		}
		if err := m.SetContainerStartup(c.uid, c.container, true); !errors.Is(err, c.want) {
			t.Errorf("%s: SetContainerStartup gave %v, want %v", c.name, err, c.want)
		}
	}
}

func TestH2_ReadinessChangesTheConditions(t *testing.T) {
	pod := newPod("web")
	m := standalone(t, pod)
	if _, err := m.SetPodStatus(pod, running(pod, false)); err != nil {
		t.Fatal(err)
	}
	for _, ready := range []bool{true, true, false} {
		if err := m.SetContainerReadiness(pod.UID, "process://web-uid", ready); err != nil {
			t.Fatal(err)
		}
		got, _ := m.GetPodStatus(pod.UID)
		if got.ContainerStatuses[0].Ready != ready || isReady(&got) != ready {
			t.Errorf("container ready %v, pod ready %v; want both %v", got.ContainerStatuses[0].Ready, isReady(&got), ready)
		}
	}
	if got := m.cache.load(pod.UID).version; got != 3 {
		t.Errorf("version is %d after one status and two flips, want 3", got)
	}
}

// #139244: reports that read and write back lose what came in between; updates do not.
func TestUpdatePodStatusIsAtomic(t *testing.T) {
	pod := newPod("web", func(p *v1.Pod) {
		p.Spec.Containers = nil
		for i := range 8 {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i)})
		}
	})
	m := standalone(t, pod)
	status := v1.PodStatus{Phase: v1.PodRunning}
	for i := range 8 {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: fmt.Sprint("c", i), ContainerID: fmt.Sprint("id", i)})
	}
	if _, err := m.SetPodStatus(pod, status); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := m.UpdatePodStatus(pod.UID, func(s *v1.PodStatus) { s.ContainerStatuses[i].RestartCount++ }); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			if err := m.SetContainerReadiness(pod.UID, fmt.Sprint("id", i), true); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, _ := m.GetPodStatus(pod.UID)
	for _, c := range got.ContainerStatuses {
		if c.RestartCount != 50 || !c.Ready {
			t.Errorf("%s: %d restarts, ready %v; want 50 and true: an update was lost", c.Name, c.RestartCount, c.Ready)
		}
	}
}

func TestUpdatePodStatusOfTheUnknown(t *testing.T) {
	silent := newPod("silent")
	m := standalone(t, silent)
	update := func(*v1.PodStatus) { t.Error("the function was called") }
	if _, err := m.UpdatePodStatus("unknown", update); !errors.Is(err, ErrUnknownPod) {
		t.Errorf("got %v, want ErrUnknownPod", err)
	}
	if _, err := m.UpdatePodStatus(silent.UID, update); !errors.Is(err, ErrNoStatus) {
		t.Errorf("got %v, want ErrNoStatus", err)
	}
}

func TestStandaloneHasNothingPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.Client = nil }).runWith("web")
		w.set(pod, running(pod, true))
		if err := w.manager.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		w.wantNothingPending()
		w.wantLog("there is no API server")
	})
}

func TestResizeConditions(t *testing.T) {
	pod := newPod("web")
	m := standalone(t, pod)
	if !m.Resizes().SetPodResizePendingCondition(pod.UID, "Deferred", "no room", 2) {
		t.Error("a new pending condition is not reported as a change")
	}
	if m.Resizes().SetPodResizePendingCondition(pod.UID, "Deferred", "still no room", 2) {
		t.Error("a new message alone is reported as a change (Z1)")
	}
	if got := m.Resizes().GetPodResizeConditions(pod.UID); len(got) != 1 || got[0].Reason != "Deferred" {
		t.Errorf("resize conditions are %+v, want Deferred", got)
	}
	m.Resizes().ClearPodResizePendingCondition(pod.UID)
	if generation, changed := m.Resizes().SetPodResizeInProgressCondition(pod.UID, "", "", 2); generation != 2 || !changed {
		t.Errorf("in progress: generation %d, changed %v", generation, changed)
	}
	if generation, changed := m.Resizes().SetPodResizeInProgressCondition(pod.UID, "", "", 3); generation != 2 || changed {
		t.Errorf("in progress again: generation %d, changed %v; want the first one kept (Z2)", generation, changed)
	}
	conditions := m.Resizes().GetPodResizeConditions(pod.UID)
	if len(conditions) != 1 || conditions[0].Type != v1.PodResizeInProgress {
		t.Fatalf("conditions are %v", conditions)
	}
	conditions[0].Message = "scribbled" // Z7
	if m.Resizes().GetPodResizeConditions(pod.UID)[0].Message == "scribbled" {
		t.Error("the conditions were changed through what was handed out")
	}
	if generation, cleared := m.Resizes().ClearPodResizeInProgressCondition(pod.UID); generation != 2 || !cleared {
		t.Errorf("cleared generation %d, %v", generation, cleared)
	}
	if _, cleared := m.Resizes().ClearPodResizeInProgressCondition(pod.UID); cleared {
		t.Error("cleared what was not there")
	}
}

func TestZ5_BackfillKeepsTransitionTimes(t *testing.T) {
	since := metav1.NewTime(time.Unix(4242, 0))
	pod := newPod("web", func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: "Deferred", LastTransitionTime: since}}
	})
	m := standalone(t, pod)
	m.Resizes().BackfillPodResizeConditions([]*v1.Pod{pod})
	got := m.Resizes().GetPodResizeConditions(pod.UID)
	if len(got) != 1 || !got[0].LastTransitionTime.Equal(&since) {
		t.Errorf("backfilled %v, want the transition time %v", got, since)
	}
}

// Reporters repeat themselves: a report that changes nothing costs a comparison and no memory.
func TestAReportThatChangesNothingAllocatesNothing(t *testing.T) {
	pod := newPod("web")
	m := standalone(t, pod)
	report := running(pod, true)
	if _, err := m.SetPodStatus(pod, report); err != nil {
		t.Fatal(err)
	}
	if allocs := testing.AllocsPerRun(50, func() { m.SetPodStatus(pod, report) }); allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

// An option that holds a nil pointer is not nil to Go, and would be used.
func TestOptionsThatHoldANilPointerAreRefused(t *testing.T) {
	for name, options := range map[string]Options{
		"Journal":    {Journal: (*journal.Durable)(nil)},
		"Client":     {Client: (*restClient)(nil)},
		"Pods":       {Pods: (*pods.Table)(nil)},
		"Safety":     {Safety: (*gate)(nil)},
		"Registerer": {Registerer: (*prometheus.Registry)(nil)},
	} {
		if _, err := New(options); err == nil || !strings.Contains(err.Error(), name+" is a nil *") {
			t.Errorf("%s: got %v, want an error that names the option", name, err)
		}
	}
	if _, err := New(Options{}); err != nil {
		t.Errorf("the zero options: %v", err)
	}
}
