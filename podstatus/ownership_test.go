package podstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

const ownType v1.PodConditionType = "example.com/Synced"

func TestC17_DeclaredTypesAreOwnedAndTimed(t *testing.T) {
	own := podrules.Owning(ownType, ownType, v1.PodReady, v1.PodResizePending, v1.DisruptionTarget)
	for _, c := range allTypes {
		kubelet := podrules.Ownership{}
		if own.IsOwned(c) != kubelet.IsOwned(c) || own.IsShared(c) != kubelet.IsShared(c) ||
			own.IsForeign(c) != kubelet.IsForeign(c) || own.HasTransitionTime(c) != kubelet.HasTransitionTime(c) {
			t.Errorf("%s: declaring other types, or itself, has changed what it is", c)
		}
	}
	if !own.IsOwned(ownType) || !own.HasTransitionTime(ownType) || own.IsShared(ownType) || own.IsForeign(ownType) {
		t.Errorf("the declared type is owned %t, timed %t, shared %t, foreign %t", own.IsOwned(ownType),
			own.HasTransitionTime(ownType), own.IsShared(ownType), own.IsForeign(ownType))
	}
	if podstatus.IsOwned(ownType) {
		t.Error("a declaration reaches those who did not make it")
	}
}

func TestC17_DeclaredTypesAreSentAndRemoved(t *testing.T) {
	own := podrules.Owning(ownType)
	pod := &v1.Pod{}
	api := parsePhase("Running Ready=True x.io/a=True")
	report := parsePhase("Running Ready=True example.com/Synced=False")
	cached := own.Next(pod, api, report, noon)
	checkTime(t, "the node keeps the time", cached.Conditions[1].LastTransitionTime, noon)
	if own.Unchanged(pod, api, report) || own.Equal(api, &cached) || !own.NeedsReconcile(pod, api, &cached) {
		t.Error("a declared condition that is new is no change")
	}

	merged := own.Merge(pod, api, &cached, false, noon)
	check(t, "merged", describeAll(merged.Conditions), "x.io/a=True, Ready=True, example.com/Synced=False")
	patch, err := own.Patch(testUID, api, &merged)
	if err != nil || !strings.Contains(string(patch), string(ownType)) {
		t.Errorf("the patch does not carry it: %s, %v", patch, err)
	}

	without := own.Next(pod, &cached, parsePhase("Running Ready=True"), noon)
	if own.Equal(&cached, &without) {
		t.Error("a declared condition that is gone is no change")
	}
	gone := own.Merge(pod, &merged, &without, false, noon)
	patch, err = own.Patch(testUID, &merged, &gone)
	if want := fmt.Sprintf(`{"$patch":"delete","type":%q}`, ownType); err != nil || !strings.Contains(string(patch), want) {
		t.Errorf("a declared condition that is not reported any more: %s, %v, want %s", patch, err, want)
	}

	// To a node that did not declare it, it is another's.
	foreign := podrules.Merge(pod, &merged, &without, false, noon)
	if patch := mustPatch(t, &merged, &foreign); patch != nil {
		t.Errorf("a type that was not declared is written: %s", patch)
	}
}

// A readiness gate of a type that the node owns is decided by what the node says.
func TestC17_H6_DeclaredTypesMayBeReadinessGates(t *testing.T) {
	own := podrules.Owning(ownType)
	pod := parsePod(t, "app=main gate=example.com/Synced version=1")
	for _, row := range []struct{ cached, api, want v1.ConditionStatus }{
		{v1.ConditionTrue, v1.ConditionFalse, v1.ConditionTrue},
		{v1.ConditionFalse, v1.ConditionTrue, v1.ConditionFalse},
	} {
		cached := &v1.PodStatus{
			Phase:             v1.PodRunning,
			Conditions:        []v1.PodCondition{{Type: ownType, Status: row.cached}},
			ContainerStatuses: parseStatuses(t, "main:running"),
		}
		gates := []v1.PodCondition{{Type: ownType, Status: row.api}}
		got, _ := own.WithContainerReady(pod, gates, cached, "c://main", true, noon)
		if ready := podstatus.FindCondition(got.Conditions, v1.PodReady); ready.Status != row.want {
			t.Errorf("own condition %s, the API's %s: Ready is %s, want %s", row.cached, row.api, ready.Status, row.want)
		}
	}
}

// Foreign conditions of a cached status may be old: a change of them alone is not stored (E3).
func TestH6_ReadinessGatesAreDecidedByTheNewestConditions(t *testing.T) {
	for _, row := range []struct {
		story       string
		pod         string
		cached, api string
		want        v1.ConditionStatus
	}{
		{"the gate was closed since", "version=7", "x.io/lb=True", "x.io/lb=False", v1.ConditionFalse},
		{"the gate was opened since", "version=7", "x.io/lb=False", "x.io/lb=True", v1.ConditionTrue},
		{"the gate's condition was removed since", "version=7", "x.io/lb=True", "", v1.ConditionFalse},
		{"a pod that the API never had", "", "x.io/lb=True", "", v1.ConditionTrue},
	} {
		pod := parsePod(t, "app=main gate=x.io/lb "+row.pod)
		pod.Status.Conditions = parseConditions(row.api)
		cached := &v1.PodStatus{
			Phase:             v1.PodRunning,
			Conditions:        parseConditions(row.cached),
			ContainerStatuses: parseStatuses(t, "main:running"),
		}
		got, flip := podrules.WithContainerReady(pod, cached, "c://main", true, noon)
		if ready := podstatus.FindCondition(got.Conditions, v1.PodReady); flip != podrules.Flipped || ready.Status != row.want {
			t.Errorf("%s: %v, Ready is %s, want %s", row.story, flip, ready.Status, row.want)
		}
		if before, after := podstatus.FindCondition(cached.Conditions, "x.io/lb"), podstatus.FindCondition(got.Conditions, "x.io/lb"); *before != *after {
			t.Errorf("%s: the foreign condition was taken over into the status", row.story)
		}
	}
}

func TestC4_ATransitionTimeThatWasNeverSetIsNow(t *testing.T) {
	old := &v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	got := podrules.TransitionTime(old, &old.Conditions[0], noon)
	checkTime(t, "same status, no time", got, noon)
}

// checkDeclared compares a declared type with one of the kubelet's: what one node says of
// Ready must go the same way as what another says of its own type.
func checkDeclared(t *rapid.T) {
	own := podrules.Owning(ownType)
	rename := func(s *v1.PodStatus, from, to v1.PodConditionType) *v1.PodStatus {
		s = s.DeepCopy()
		for i := range s.Conditions {
			if s.Conditions[i].Type == from {
				s.Conditions[i].Type = to
			}
		}
		return s
	}
	draw := func(label string) *v1.PodStatus {
		s := &v1.PodStatus{Phase: v1.PodRunning}
		for range rapid.IntRange(0, 3).Draw(t, label) {
			s.Conditions = append(s.Conditions, v1.PodCondition{
				Type:               anyOf(t, "type", v1.PodScheduled, v1.PodInitialized, "x.io/foreign", v1.DisruptionTarget),
				Status:             anyOf(t, "status", v1.ConditionTrue, v1.ConditionFalse),
				LastTransitionTime: metav1.NewTime(epoch.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "time")) * time.Second)),
			})
		}
		return s
	}
	pod := &v1.Pod{}
	api, old, report := draw("api"), draw("old"), draw("report")
	run := func(o podrules.Ownership, to v1.PodConditionType) string {
		r := func(s *v1.PodStatus) *v1.PodStatus { return rename(s, v1.PodScheduled, to) }
		next := o.Next(pod, r(old), r(report), epoch)
		merged := o.Merge(pod, r(api), &next, false, epoch)
		patch, err := o.Patch(testUID, r(api), &merged)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(o.Unchanged(pod, r(old), r(report)), o.Equal(r(old), &next), o.NeedsReconcile(pod, r(api), &next),
			" ", strings.ReplaceAll(string(patch), string(to), "TYPE"))
	}
	if declared, kubelet := run(own, ownType), run(podrules.Ownership{}, v1.PodScheduled); declared != kubelet {
		t.Fatalf("a declared type goes another way than one of the kubelet's:\n%s\n%s", declared, kubelet)
	}
}

func TestDeclaredTypesGoTheWayOfTheKubelets(t *testing.T) { rapid.Check(t, checkDeclared) }

func FuzzOwnership(f *testing.F) { fuzz(f, checkDeclared) }
