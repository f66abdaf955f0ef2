package status

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
)

// asked counts how often it is asked whether containers could run.
type asked struct{ times atomic.Int64 }

func (a *asked) CouldHaveRunningContainers(*v1.Pod) bool {
	a.times.Add(1)
	return false
}

// Whether containers could run decides on a terminal phase and on nothing else, so a change of any
// other status does not ask for it: the answer may take a lock that the pod's worker holds.
func TestSafetyIsAskedForATerminalPhaseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		safety := &asked{}
		w, pod := newWorld(t, func(o *Options) { o.Safety = safety }).runWith("web", restartNever)
		want := func(story string, times int64, phase v1.PodPhase, ready bool) {
			t.Helper()
			synctest.Wait()
			if got := safety.times.Load(); got != times {
				t.Errorf("%s: Safety was asked %d times, want %d", story, got, times)
			}
			if api := w.api.Pod(pod); api.Status.Phase != phase || isReady(&api.Status) != ready {
				t.Errorf("%s: the API says %s, ready %t; want %s, %t", story, api.Status.Phase, isReady(&api.Status), phase, ready)
			}
		}
		w.set(pod, running(pod, true))
		want("the start", 0, v1.PodRunning, true)
		id := "process://" + string(pod.UID)
		must(w.manager.SetContainerReadiness(pod.UID, id, false))
		want("the loss of readiness", 0, v1.PodRunning, false)
		must(w.manager.SetContainerReadiness(pod.UID, id, true))
		want("the flip back", 0, v1.PodRunning, true)
		w.set(pod, ended(pod, 0))
		want("the end", 1, v1.PodSucceeded, false)
	})
}
