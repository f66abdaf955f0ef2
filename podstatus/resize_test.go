package podstatus_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

func checkTime(t *testing.T, story string, got metav1.Time, want time.Time) {
	t.Helper()
	if !got.Time.Equal(want) {
		t.Errorf("%s: got %v, want %v", story, got, want)
	}
}

func TestZ1_PendingChangesWithReasonOrGeneration(t *testing.T) {
	var r podstatus.ResizeConditions
	for i, step := range []struct {
		story, reason, message string
		generation             int64
		changed                bool
		want                   string
		since                  int // the step at which the transition time was set
	}{
		{"first", v1.PodReasonDeferred, "no room", 2, true, `PodResizePending=True (Deferred) "no room" gen=2`, 0},
		{"message alone", v1.PodReasonDeferred, "still no room", 2, false, `PodResizePending=True (Deferred) "still no room" gen=2`, 0},
		{"generation", v1.PodReasonDeferred, "still no room", 3, true, `PodResizePending=True (Deferred) "still no room" gen=3`, 0},
		{"another reason is Deferred too", "Busy", "busy", 3, false, `PodResizePending=True (Deferred) "busy" gen=3`, 0},
		{"infeasible", v1.PodReasonInfeasible, "too big", 3, true, `PodResizePending=True (Infeasible) "too big" gen=3`, 4},
		{"deferred again", "", "", 3, true, `PodResizePending=True (Deferred) gen=3`, 5},
	} {
		at := noon.Add(time.Duration(i) * time.Minute)
		next, changed := r.SetPending(step.reason, step.message, step.generation, at)
		check(t, step.story, describe(*next.Pending), step.want)
		if changed != step.changed {
			t.Errorf("%s: changed: got %t, want %t", step.story, changed, step.changed)
		}
		checkTime(t, step.story+": transition", next.Pending.LastTransitionTime, noon.Add(time.Duration(step.since)*time.Minute))
		checkTime(t, step.story+": probe", next.Pending.LastProbeTime, at)
		r = next
	}
}

// Two deferrals within a second have an order, which only the status does not show.
func TestZ8_TimesAreExactUntilTheyAreInAStatus(t *testing.T) {
	first, _ := podstatus.ResizeConditions{}.SetPending(v1.PodReasonDeferred, "", 1, noon.Add(time.Millisecond))
	second, _ := podstatus.ResizeConditions{}.SetPending(v1.PodReasonDeferred, "", 1, noon.Add(2*time.Millisecond))
	third, _, _ := podstatus.ResizeConditions{}.SetInProgress("", "", 1, noon.Add(3*time.Millisecond))
	if !first.Pending.LastTransitionTime.Before(&second.Pending.LastTransitionTime) || !second.Pending.LastTransitionTime.Before(&third.InProgress.LastTransitionTime) {
		t.Errorf("the order is lost: %v, %v, %v", first.Pending.LastTransitionTime, second.Pending.LastTransitionTime, third.InProgress.LastTransitionTime)
	}
	if got := second.List()[0].LastTransitionTime; !got.Equal(&second.Pending.LastTransitionTime) {
		t.Errorf("List hands out %v", got)
	}
	status := podrules.Next(&v1.Pod{}, &v1.PodStatus{}, &v1.PodStatus{Conditions: second.List()}, noon)
	checkTime(t, "in a status", status.Conditions[0].LastTransitionTime, noon)
	checkTime(t, "probe time in a status", status.Conditions[0].LastProbeTime, noon)
}

func TestResize_SameButProbed(t *testing.T) {
	set := func(reason, message string, generation int64, at time.Duration) podstatus.ResizeConditions {
		r, _ := podstatus.ResizeConditions{}.SetPending(reason, message, generation, noon)
		r, _ = r.SetPending(reason, message, generation, noon.Add(at))
		return r
	}
	one := set(v1.PodReasonDeferred, "no room", 1, 0)
	if !one.SameButProbed(set(v1.PodReasonDeferred, "no room", 1, time.Hour)) {
		t.Error("a later probe is a difference")
	}
	cleared, _ := one.ClearPending()
	progress, _, _ := one.SetInProgress("", "", 1, noon)
	for name, other := range map[string]podstatus.ResizeConditions{
		"reason": set(v1.PodReasonInfeasible, "no room", 1, 0), "message": set(v1.PodReasonDeferred, "room", 1, 0),
		"generation": set(v1.PodReasonDeferred, "no room", 2, 0), "none": cleared, "both": progress,
	} {
		if one.SameButProbed(other) || other.SameButProbed(one) {
			t.Errorf("%s: the difference is not seen", name)
		}
	}
}

func TestZ2_InProgressKeepsItsGenerationAndItsWords(t *testing.T) {
	var r podstatus.ResizeConditions
	for i, step := range []struct {
		story, reason, message string
		generation             int64
		effective              int64
		changed                bool
		want                   string
		since                  int
	}{
		{"first", "", "", 2, 2, true, "PodResizeInProgress=True gen=2", 0},
		{"again", "", "", 2, 2, false, "PodResizeInProgress=True gen=2", 0},
		{"a newer generation is ignored", "", "", 5, 2, false, "PodResizeInProgress=True gen=2", 0},
		{"error", v1.PodReasonError, "cgroup", 5, 2, true, `PodResizeInProgress=True (Error) "cgroup" gen=2`, 3},
		{"empty words keep the old ones", "", "", 2, 2, false, `PodResizeInProgress=True (Error) "cgroup" gen=2`, 3},
		{"another message", v1.PodReasonError, "quota", 2, 2, true, `PodResizeInProgress=True (Error) "quota" gen=2`, 3},
		{"a message alone takes the reason away", "", "waiting", 2, 2, true, `PodResizeInProgress=True "waiting" gen=2`, 6},
	} {
		at := noon.Add(time.Duration(i) * time.Minute)
		next, effective, changed := r.SetInProgress(step.reason, step.message, step.generation, at)
		check(t, step.story, describe(*next.InProgress), step.want)
		if effective != step.effective || changed != step.changed {
			t.Errorf("%s: got generation %d, changed %t; want %d, %t", step.story, effective, changed, step.effective, step.changed)
		}
		checkTime(t, step.story+": transition", next.InProgress.LastTransitionTime, noon.Add(time.Duration(step.since)*time.Minute))
		r = next
	}
}

func TestZ3_ClearingSaysWhatWas(t *testing.T) {
	var none podstatus.ResizeConditions
	if _, existed := none.ClearPending(); existed {
		t.Error("clearing an absent Pending: got true, want false")
	}
	if _, generation, existed := none.ClearInProgress(); existed || generation != 0 {
		t.Errorf("clearing an absent InProgress: got %d, %t; want 0, false", generation, existed)
	}
	both, _ := none.SetPending(v1.PodReasonDeferred, "", 4, noon)
	both, _, _ = both.SetInProgress("", "", 3, noon)
	left, existed := both.ClearPending()
	if !existed || left.Pending != nil || left.InProgress != both.InProgress {
		t.Errorf("clearing Pending: got %t and %+v, want true and InProgress alone", existed, left)
	}
	left, generation, existed := both.ClearInProgress()
	if !existed || generation != 3 || left.InProgress != nil || left.Pending != both.Pending {
		t.Errorf("clearing InProgress: got %d, %t and %+v; want 3, true and Pending alone", generation, existed, left)
	}
}

func TestZ4_ListIsPendingThenInProgressAndAlwaysTrue(t *testing.T) {
	var r podstatus.ResizeConditions
	if got := r.List(); got != nil || !r.IsZero() {
		t.Errorf("no resize: got %v, zero %t; want nil and true", got, r.IsZero())
	}
	r, _, _ = r.SetInProgress("", "", 1, noon)
	if r.IsZero() {
		t.Error("a resize in progress is zero")
	}
	r, _ = r.SetPending(v1.PodReasonDeferred, "", 2, noon)
	list := r.List()
	if len(list) != 2 {
		t.Fatalf("got %v, want two conditions", list)
	}
	check(t, "first", describe(list[0]), "PodResizePending=True (Deferred) gen=2")
	check(t, "second", describe(list[1]), "PodResizeInProgress=True gen=1")
}

func TestZ5_ConditionsReadBackKeepTheirTimes(t *testing.T) {
	var r podstatus.ResizeConditions
	r, _ = r.SetPending(v1.PodReasonInfeasible, "too big", 2, noon)
	r, _, _ = r.SetInProgress(v1.PodReasonError, "cgroup", 1, noon)
	conditions := append(parseConditions("Ready=True"), r.List()...)
	back := podstatus.ResizeConditionsOf(conditions)
	check(t, "pending", describe(*back.Pending), describe(*r.Pending))
	check(t, "in progress", describe(*back.InProgress), describe(*r.InProgress))
	checkTime(t, "pending", back.Pending.LastTransitionTime, noon)
	checkTime(t, "in progress", back.InProgress.LastTransitionTime, noon)
	if later, _ := back.SetPending(v1.PodReasonInfeasible, "too big", 2, noon.Add(time.Hour)); !later.Pending.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("set again after a restart: got %v, want the first time %v", later.Pending.LastTransitionTime, noon)
	}
	if got := podstatus.ResizeConditionsOf(parseConditions("Ready=True PodResizePending=False PodResizeInProgress=Unknown")); !got.IsZero() {
		t.Errorf("conditions that are not True: got %+v, want none", got)
	}
}

func TestZ6_ResizeConditionsArePartOfNoStatusUntilListed(t *testing.T) {
	status := runningStatus(t, "Ready=True")
	r := podstatus.ResizeConditionsOf(status.Conditions)
	r, _ = r.SetPending(v1.PodReasonDeferred, "", 2, noon)
	if len(status.Conditions) != 1 {
		t.Errorf("setting a resize condition changed a status: %v", status.Conditions)
	}
	if status.Conditions = append(status.Conditions, r.List()...); len(status.Conditions) != 2 {
		t.Errorf("listing them: got %v, want two conditions", status.Conditions)
	}
}

func TestZ7_ValuesAreImmutable(t *testing.T) {
	var r podstatus.ResizeConditions
	r, _ = r.SetPending(v1.PodReasonDeferred, "first", 1, noon)
	r, _, _ = r.SetInProgress("", "first", 1, noon)
	pending, inProgress := *r.Pending, *r.InProgress

	r.List()[0].Message = "written by a caller"
	_, _ = r.SetPending(v1.PodReasonInfeasible, "second", 2, noon.Add(time.Hour))
	_, _, _ = r.SetInProgress(v1.PodReasonError, "second", 2, noon.Add(time.Hour))
	r.ClearPending()
	r.ClearInProgress()
	if *r.Pending != pending || *r.InProgress != inProgress {
		t.Errorf("got %s and %s, want what was first set", describe(*r.Pending), describe(*r.InProgress))
	}

	conditions := r.List()
	podstatus.ResizeConditionsOf(conditions).Pending.Message = "written by a caller"
	check(t, "reading back shares nothing", conditions[0].Message, "first")
}
