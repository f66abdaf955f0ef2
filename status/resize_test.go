package status

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// slowResizes is a journal on a disk that the test holds.
type slowResizes struct {
	Journal
	writes int
	err    error
	hold   chan struct{} // if not nil, a write waits for it
}

func (j *slowResizes) SetResizeConditions(uid types.UID, r podstatus.ResizeConditions) error {
	j.writes++
	if j.hold != nil {
		<-j.hold
	}
	if j.err != nil {
		return j.err
	}
	return j.Journal.SetResizeConditions(uid, r)
}

func TestResizeConditionsAreReadWhileTheDiskIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowResizes{Journal: journal.NewMemory()}
		w := newWorld(t, withJournal(slow))
		w.manager.Resizes().SetPodResizePendingCondition("other", v1.PodReasonDeferred, "no room", 1)
		slow.hold = make(chan struct{})
		done := make(chan bool)
		go func() {
			done <- w.manager.Resizes().SetPodResizePendingCondition("uid", v1.PodReasonDeferred, "no room", 1)
		}()
		synctest.Wait()
		if got := w.manager.Resizes().GetPodResizeConditions("other"); len(got) != 1 {
			t.Errorf("another pod has %+v, want its condition", got)
		}
		if got := w.manager.Resizes().GetPodResizeConditions("uid"); len(got) != 0 {
			t.Errorf("the pod has %+v before the journal does", got)
		}
		if got := w.counter("statusd_pod_pending_resizes"); got != 1 {
			t.Errorf("%v pending resizes are counted, want 1", got)
		}
		close(slow.hold)
		if changed := <-done; !changed || len(w.manager.Resizes().GetPodResizeConditions("uid")) != 1 {
			t.Error("the condition is not set after the disk was done")
		}
	})
}

func TestResizeConditionThatIsSetAgainIsNotWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowResizes{Journal: journal.NewMemory()}
		w := newWorld(t, withJournal(slow))
		for range 100 {
			w.manager.Resizes().SetPodResizePendingCondition("uid", v1.PodReasonDeferred, "no room", 1)
			w.manager.Resizes().ClearPodResizeInProgressCondition("uid")
			time.Sleep(time.Second)
		}
		if slow.writes != 1 {
			t.Errorf("%d writes to the journal, want 1", slow.writes)
		}
		got := w.manager.Resizes().GetPodResizeConditions("uid")[0]
		if age := time.Since(got.LastProbeTime.Time); age != time.Second {
			t.Errorf("the last probe is %v ago, want 1s", age)
		}

		slow.err = errors.New("no space left on device")
		w.manager.Resizes().SetPodResizePendingCondition("uid", v1.PodReasonInfeasible, "too big", 1)
		slow.err = nil
		w.manager.Resizes().SetPodResizePendingCondition("uid", v1.PodReasonInfeasible, "too big", 1)
		if kept := slow.AllResizeConditions()["uid"]; kept.Pending == nil || kept.Pending.Reason != v1.PodReasonInfeasible {
			t.Errorf("the journal has %+v: what it did not take is not written again", kept.Pending)
		}
	})
}

func TestResizesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager
		wants := func(story string, deferred, infeasible, inProgress float64) {
			t.Helper()
			families, err := w.registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, family := range families {
				for _, metric := range family.GetMetric() {
					name := family.GetName()
					for _, label := range metric.GetLabel() {
						name += "/" + label.GetValue()
					}
					got[name] = metric.GetGauge().GetValue()
				}
			}
			for name, want := range map[string]float64{"statusd_pod_pending_resizes/deferred": deferred,
				"statusd_pod_pending_resizes/infeasible": infeasible, "statusd_pod_in_progress_resizes": inProgress} {
				if value, ok := got[name]; !ok || value != want {
					t.Errorf("%s: %s is %v (there: %t), want %v", story, name, value, ok, want)
				}
			}
		}
		wants("none", 0, 0, 0)
		m.Resizes().SetPodResizePendingCondition("a", v1.PodReasonDeferred, "", 1)
		m.Resizes().SetPodResizePendingCondition("b", v1.PodReasonDeferred, "", 1)
		m.Resizes().SetPodResizeInProgressCondition("b", "", "", 1)
		wants("two deferred, one in progress", 2, 0, 1)
		m.Resizes().SetPodResizePendingCondition("a", v1.PodReasonInfeasible, "", 1)
		wants("one became infeasible", 1, 1, 1)
		m.Resizes().ClearPodResizePendingCondition("b")
		m.RemoveOrphanedStatuses(map[types.UID]bool{"b": true})
		wants("one removed", 0, 0, 1)
		m.Resizes().ClearPodResizeInProgressCondition("b")
		wants("all done", 0, 0, 0)
	})
}

func TestResizeConditionsOfAnUnknownPod_AreNotStored(t *testing.T) {
	m, err := New(Options{Logger: slog.New(slog.DiscardHandler)})
	must(err)
	if m.Resizes().SetPodResizePendingCondition("unknown", v1.PodReasonDeferred, "", 1) {
		t.Error("a condition of an unknown pod counts as changed")
	}
	if _, changed := m.Resizes().SetPodResizeInProgressCondition("unknown", "", "", 1); changed {
		t.Error("a condition of an unknown pod counts as changed")
	}
	if got := m.Resizes().GetPodResizeConditions("unknown"); len(got) != 0 {
		t.Errorf("stored: %v", got)
	}
}
