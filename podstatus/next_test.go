package podstatus_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

func TestC3_C4_NextKeepsTransitionTimesOfSevenTypes(t *testing.T) {
	ours := metav1.NewTime(noon.Add(time.Hour)) // what the reporter says about times counts for nothing
	old := &v1.PodStatus{Conditions: parseConditions("Ready=True ContainersReady=True PodResizePending=True x.io/gate=True")}
	for i := range old.Conditions {
		old.Conditions[i].LastTransitionTime = earlier
	}
	incoming := &v1.PodStatus{Conditions: parseConditions(
		"Ready=True ContainersReady=False Initialized=True PodResizePending=True x.io/gate=False")}
	for i := range incoming.Conditions {
		incoming.Conditions[i].LastTransitionTime = ours
	}
	got := podrules.Next(&v1.Pod{}, old, incoming, noon)
	checkTime(t, "Ready stays True", got.Conditions[0].LastTransitionTime, earlier.Time)
	checkTime(t, "ContainersReady turns False", got.Conditions[1].LastTransitionTime, noon)
	checkTime(t, "Initialized is new", got.Conditions[2].LastTransitionTime, noon)
	checkTime(t, "PodResizePending is not among the seven", got.Conditions[3].LastTransitionTime, ours.Time)
	checkTime(t, "x.io/gate is foreign", got.Conditions[4].LastTransitionTime, ours.Time)
}

// If both were stored, a probe result would change the first, and the last would be sent.
func TestE7_NextKeepsTheLastOfTwoConditionsWithOneType(t *testing.T) {
	old := &v1.PodStatus{Conditions: parseConditions("Ready=True")}
	incoming := &v1.PodStatus{Conditions: parseConditions("Ready=True Initialized=True Ready=False x.io/gate=True x.io/gate=False")}
	next := podrules.Next(&v1.Pod{}, old, incoming, noon)
	var got []string
	for _, c := range next.Conditions {
		got = append(got, string(c.Type)+"="+string(c.Status))
	}
	if want := []string{"Initialized=True", "Ready=False", "x.io/gate=False"}; !slices.Equal(got, want) {
		t.Errorf("the conditions are %v, want %v", got, want)
	}
	checkTime(t, "Ready turns False", next.Conditions[1].LastTransitionTime, noon)
}

func TestU8_TheFirstStartTimeStays(t *testing.T) {
	first, second, zero := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon.Add(-time.Minute)), metav1.Time{}
	for _, row := range []struct {
		story         string
		old, incoming *metav1.Time
		want          time.Time
	}{
		{"old wins", &first, &second, first.Time},
		{"old wins over none", &first, nil, first.Time},
		{"incoming if old has none", nil, &second, second.Time},
		{"incoming if old is zero", &zero, &second, second.Time},
		{"now if there is none", nil, nil, noon},
		{"now if both are zero", &zero, &zero, noon},
	} {
		incoming := &v1.PodStatus{StartTime: row.incoming}
		got := podrules.Next(&v1.Pod{}, &v1.PodStatus{StartTime: row.old}, incoming, noon.Add(time.Millisecond))
		checkTime(t, row.story, *got.StartTime, row.want)
		if got.StartTime == row.old || got.StartTime == row.incoming {
			t.Errorf("%s: the start time is shared with an input", row.story)
		}
	}
}

func TestG3_ObservedGenerationNeverDecreases(t *testing.T) {
	for _, row := range []struct{ old, incoming, want int64 }{{1, 2, 2}, {2, 1, 2}, {2, 0, 2}, {0, 0, 0}} {
		got := podrules.Next(&v1.Pod{}, &v1.PodStatus{ObservedGeneration: row.old},
			&v1.PodStatus{ObservedGeneration: row.incoming}, noon)
		if got.ObservedGeneration != row.want {
			t.Errorf("old %d, incoming %d: got %d, want %d", row.old, row.incoming, got.ObservedGeneration, row.want)
		}
	}
}

// A pod object may be older than the report before it: that of a watch that lags behind, or of a reporter that has kept it.
func TestG3_ConditionsObserveNoOlderGeneration(t *testing.T) {
	newer, older := parsePod(t, "app=main gen=2"), parsePod(t, "app=main gen=1")
	reported := func(pod *v1.Pod, ready v1.ConditionStatus) *v1.PodStatus {
		status := parsePhase("Running")
		status.ContainerStatuses = parseStatuses(t, "main:running")
		status.ContainerStatuses[0].ContainerID, status.ContainerStatuses[0].Ready = "c://main", true
		for _, kind := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
			status.Conditions = append(status.Conditions, podrules.Generated(pod, kind, ready))
		}
		return status
	}
	flipped, _ := podrules.WithContainerReady(older, reported(newer, v1.ConditionTrue), "c://main", false, noon)
	for _, row := range []struct {
		story string
		got   v1.PodStatus
		want  int64
	}{
		{"the API shows the end first", podrules.Merge(older, parsePhase("Failed"), reported(newer, v1.ConditionTrue), false, noon), 2},
		{"a probe fails", flipped, 2},
		{"terminated", podrules.Terminate(older, reported(newer, v1.ConditionTrue), nil), 2},
		{"reported", podrules.Next(older, reported(newer, v1.ConditionTrue), reported(older, v1.ConditionFalse), noon), 1}, // as the reporter says
	} {
		for _, kind := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
			if c := podstatus.FindCondition(row.got.Conditions, kind); c == nil || c.Status != v1.ConditionFalse || c.ObservedGeneration != row.want {
				t.Errorf("%s: got %+v, want %s=False of generation %d", row.story, c, kind, row.want)
			}
		}
	}
}

func TestTerminalIsFinal_NextKeepsPhaseReasonAndMessage(t *testing.T) {
	for _, row := range []struct {
		story         string
		old, incoming v1.PodPhase
		final         bool
	}{
		{"Failed is not left for Running", v1.PodFailed, v1.PodRunning, true},
		{"Failed is not left for Succeeded", v1.PodFailed, v1.PodSucceeded, true},
		{"Succeeded is not left for Failed", v1.PodSucceeded, v1.PodFailed, true},
		{"Failed may be explained better", v1.PodFailed, v1.PodFailed, false},
		{"Running may fail", v1.PodRunning, v1.PodFailed, false},
		{"Running may be pending again", v1.PodRunning, v1.PodPending, false},
	} {
		old := &v1.PodStatus{Phase: row.old, Reason: "Old", Message: "old"}
		incoming := &v1.PodStatus{Phase: row.incoming, Reason: "New", Message: "new", PodIP: "10.0.0.1"}
		want := *incoming
		if row.final {
			want = *old
		}
		got := podrules.Next(&v1.Pod{}, old, incoming, noon)
		if got.Phase != want.Phase || got.Reason != want.Reason || got.Message != want.Message || got.PodIP != "10.0.0.1" {
			t.Errorf("%s: got %s/%s/%s with IP %q, want %s/%s/%s with the new IP", row.story,
				got.Phase, got.Reason, got.Message, got.PodIP, want.Phase, want.Reason, want.Message)
		}
	}
}

func TestU7_NextNormalizesLast(t *testing.T) {
	pod := parsePod(t, "app=b app=a")
	got := podrules.Next(pod, &v1.PodStatus{}, &v1.PodStatus{
		Conditions: parseConditions("Ready=True"), ContainerStatuses: parseStatuses(t, "b:running a:running"),
	}, noon.Add(time.Millisecond))
	checkTime(t, "the new transition time", got.Conditions[0].LastTransitionTime, noon)
	checkTime(t, "the new start time", *got.StartTime, noon)
	check(t, "containers", describeStates(got.ContainerStatuses), "a:running b:running")
}

func TestU1_NextSharesNothingAndWritesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, old, incoming := drawPod(t), drawStatus(t), drawStatus(t)
		oldBefore, incomingBefore := old.DeepCopy(), incoming.DeepCopy()
		next := podrules.Next(pod, old, incoming, epoch)
		scribble(&next)
		if !equality.Semantic.DeepEqual(old, oldBefore) || !equality.Semantic.DeepEqual(incoming, incomingBefore) {
			t.Fatalf("an input was written to, or shares memory with the result")
		}
	})
}
