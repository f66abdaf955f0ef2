package status

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDriftIsRepairedWhenItIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.set(pod, running(pod, true))
		w.wantLog("settled", "PATCH ns/web")
		drift(w, pod)
		w.wantLog("repaired at once, not at the next pass", "PATCH ns/web")
		if got := w.api.Pod(pod).Status.Reason; got != "" {
			t.Errorf("the API still says %q", got)
		}
	})
}

func TestDriftThatWasNotObservedIsRepairedByTheFullPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.set(pod, running(pod, true))
		w.wantLog("settled", "PATCH ns/web")
		w.api.OnStore(func(pod *v1.Pod) { w.table.Set(pod) }) // the table learns of it, the manager is not told
		drift(w, pod)
		w.wantLog("the manager does not know of it")
		time.Sleep(11 * time.Second)
		w.wantLog("the pass finds it", "PATCH ns/web")
		time.Sleep(time.Minute)
		w.wantLog("and is content from then on")
	})
}

// A write over a change that was not observed yet is refused, and made again over what the API has: it has
// what comparing statuses leaves out, too, the generation of a condition.
func TestAWriteOverAnUnseenChangeIsCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		status := running(pod, true)
		for i := range status.Conditions {
			status.Conditions[i].ObservedGeneration = 7
		}
		w.set(pod, status)
		w.wantLog("settled", "PATCH ns/web")
		w.api.OnStore(nil)
		changed := w.api.Pod(pod)
		for i := range changed.Status.Conditions {
			changed.Status.Conditions[i].ObservedGeneration = 0
		}
		w.api.Put(changed)
		w.api.OnStore(w.deliver)
		status = *status.DeepCopy()
		for i := range status.Conditions {
			status.Conditions[i].Status = v1.ConditionFalse
		}
		w.set(pod, status)
		w.wantLog("the second write has all", "PATCH ns/web", "GET ns/web", "PATCH ns/web")
		for _, c := range w.api.Pod(pod).Status.Conditions {
			if c.ObservedGeneration != 7 || c.Status != v1.ConditionFalse {
				t.Errorf("the API has %+v, want False as of generation 7", c)
			}
		}
	})
}

// Invariant 2, terminal is final: also if the watch has not shown it yet.
func TestATerminalPhaseThatTheWatchHasNotShownIsNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.OnStore(nil)
		w.api.Change(pod, func(pod *v1.Pod) { pod.Status.Phase, pod.Status.Reason = v1.PodFailed, "NodeLost" })
		w.api.OnStore(w.deliver)
		w.set(pod, running(pod, true))
		w.wantLog("the phase is written over no other than the base's", "PATCH ns/web", "GET ns/web", "PATCH ns/web")
		got := w.api.Pod(pod).Status
		if got.Phase != v1.PodFailed || got.Reason != "NodeLost" {
			t.Errorf("the API has phase %s with reason %q, want Failed with NodeLost", got.Phase, got.Reason)
		}
		w.wantReady(pod, false)
		w.wantNothingPending()
	})
}

func TestWhatExplainsAnEndThatTheWatchHasNotShownStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, true))
		w.api.OnStore(nil)
		w.api.Change(pod, func(pod *v1.Pod) { pod.Status.Phase, pod.Status.Reason = v1.PodFailed, "NodeLost" })
		w.api.OnStore(w.deliver)
		status := running(pod, true)
		status.Reason = "Busy"
		w.report(pod, status)
		if got := w.api.Pod(pod).Status; got.Phase != v1.PodFailed || got.Reason != "NodeLost" {
			t.Errorf("the API has phase %s with reason %q, want Failed with NodeLost", got.Phase, got.Reason)
		}
	})
}

// Invariant 4, own fields only.
func TestForeignConditionsAndFieldsAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		foreign := v1.PodCondition{Type: "example.com/gate", Status: v1.ConditionTrue, Reason: "Theirs"}
		claim := "claim"
		pod := w.create("web", func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{foreign}
			p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}}
			p.Status.NominatedNodeName = "other" // a nomination that the binding has ended
		})
		w.run()
		// The node's own idea of them must not get there either.
		status := running(pod, true)
		status.Conditions = append(status.Conditions, v1.PodCondition{Type: "example.com/gate", Status: v1.ConditionFalse, Reason: "Ours"})
		w.report(pod, status)
		check := func(story string) {
			t.Helper()
			got := w.api.Pod(pod).Status
			found := false
			for _, c := range got.Conditions {
				if c.Type == foreign.Type {
					found = true
					if c.Status != v1.ConditionTrue || c.Reason != "Theirs" {
						t.Errorf("%s: the foreign condition is %+v", story, c)
					}
				}
			}
			if !found {
				t.Errorf("%s: the foreign condition is gone", story)
			}
			if len(got.ResourceClaimStatuses) != 1 {
				t.Errorf("%s: the claim statuses are %+v", story, got.ResourceClaimStatuses)
			}
			// The scheduler's, but the binding has ended it. As the kubelet does, and newer servers
			// at the binding, the node clears what is left of it.
			if got.NominatedNodeName != "" {
				t.Errorf("%s: the pod runs on this node and is nominated for %s", story, got.NominatedNodeName)
			}
		}
		check("after a write")
		if got := w.api.Count("PATCH"); got != 1 {
			t.Errorf("%d patches for one change", got)
		}
		w.set(pod, ended(pod, 1))
		must(w.manager.TerminatePod(pod))
		synctest.Wait()
		check("after the end")
	})
}

// The name under which this manager writes is an option, and not the name of another writer.
func TestTheOtherWriterIsNotThisManager(t *testing.T) {
	now := metav1.Now()
	pod := newPod("web", func(p *v1.Pod) {
		p.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "other", Time: &metav1.Time{Time: now.Add(-time.Hour)}, Subresource: "status"},
			{Manager: "vk", Time: &now, Subresource: "status"},
		}
	})
	if got := otherWriter(pod, "vk"); got != "other" {
		t.Errorf("the other writer is %q, want other", got)
	}
	if got := otherWriter(pod, DefaultFieldManager); got != "vk" {
		t.Errorf("for a manager of another name the other writer is %q, want vk", got)
	}
}

// The convergence guard: another writer keeps changing the status back.
func TestFightBacksOffAndNamesTheOtherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		insists := func(p *v1.Pod) { // a controller that puts its own word in each time
			now := metav1.Now()
			p.Status.Message = "mine"
			p.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: DefaultFieldManager, Time: &now, Subresource: "status"},
				{Manager: "insisting-controller", Time: &now, Subresource: "status"},
				{Manager: "creator", Time: &metav1.Time{Time: now.Add(time.Hour)}},
			}
		}
		var gaveIn atomic.Bool
		var controller sync.WaitGroup
		w.api.OnStore(func(p *v1.Pod) {
			w.deliver(p)
			if p.Status.Message != "mine" && !gaveIn.Load() {
				controller.Go(func() { w.api.Change(pod, insists) })
			}
		})
		w.set(pod, running(pod, true))
		pass(time.Hour)
		if got := w.api.Count("PATCH"); got < 5 || got > 25 {
			t.Errorf("%d patches in an hour of fighting, want a few, further and further apart", got)
		}
		if got := w.counter("statusd_pod_status_convergence_fights_total"); got == 0 {
			t.Error("the fight was not counted")
		}
		fights := w.manager.Fights()
		if len(fights) != 1 || fights[0].Writer != "insisting-controller" || fights[0].Name != "web" {
			t.Errorf("fights are %+v, want one with the insisting controller", fights)
		}
		// A change of our own goes out at once all the same.
		w.api.ForgetRequests()
		w.report(pod, running(pod, false))
		if log := w.api.Log(); len(log) == 0 {
			t.Error("a new change waits for the end of the fight")
		}
		// The controller gives in: the fight ends.
		gaveIn.Store(true)
		controller.Wait()
		pass(time.Hour)
		if got := w.api.Pod(pod).Status.Message; got != "" {
			t.Errorf("the API says %q after the controller gave in", got)
		}
		w.wantNothingPending()
	})
}

func TestRestartWithUnchangedPodsCostsOneListAndNoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, true))
		w.stop()
		second := newWorld(t)
		second.api.Restore(w.api.Backup())
		again := second.api.Pod(pod)
		second.table.Set(again)
		second.run()
		second.set(again, running(again, true))
		second.wantLog("the API says so already")
		if second.api.Lists() != 1 {
			t.Errorf("%d lists, want one", second.api.Lists())
		}
		second.wantNothingPending()
	})
}
