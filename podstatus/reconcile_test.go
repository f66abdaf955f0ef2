package podstatus_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
)

func TestR1_AnUnknownPodIsNotReconciled(t *testing.T) {
	if podrules.NeedsReconcile(nil, parsePhase("Pending"), parsePhase("Running")) {
		t.Error("an unknown pod is nil and has nothing to reconcile")
	}
}

func TestR2_AStaticPodIsComparedWithItsMirror(t *testing.T) {
	static := parsePod(t, "source=file app=a")
	static.Status = *parsePhase("Pending")
	cached := parsePhase("Running")
	if podrules.NeedsReconcile(static, nil, cached) {
		t.Error("without a mirror there is nothing to reconcile")
	}
	if podrules.NeedsReconcile(static, parsePhase("Running"), cached) {
		t.Error("the mirror says the same; what the manifest's own status says counts for nothing")
	}
	if !podrules.NeedsReconcile(static, parsePhase("Pending"), cached) {
		t.Error("the mirror differs")
	}
}

func TestR3_AnyDifferenceThatCountsIsReconciled(t *testing.T) {
	pod := parsePod(t, "app=a app=b")
	cached := startedStatus(t)
	for story, row := range map[string]struct {
		change func(api *v1.PodStatus)
		want   bool
	}{
		"nothing":             {func(*v1.PodStatus) {}, false},
		"phase":               {func(s *v1.PodStatus) { s.Phase = v1.PodPending }, true},
		"reason":              {func(s *v1.PodStatus) { s.Reason = "x" }, true},
		"observed generation": {func(s *v1.PodStatus) { s.ObservedGeneration = 1 }, true},
		"start time":          {func(s *v1.PodStatus) { s.StartTime.Time = noon.Add(time.Second) }, true},
		"no start time":       {func(s *v1.PodStatus) { s.StartTime = nil }, true},
		"fraction of a second": {func(s *v1.PodStatus) {
			s.StartTime = &metav1.Time{Time: noon.Add(time.Millisecond)}
		}, false},
		"container": {func(s *v1.PodStatus) { s.ContainerStatuses[0].Ready = true }, true},
		"container order": {func(s *v1.PodStatus) {
			list := s.ContainerStatuses
			list[0], list[1] = list[1], list[0]
		}, false},
		"foreign condition": {func(s *v1.PodStatus) { s.Conditions = parseConditions("x.io/a=True") }, false},
		"owned condition":   {func(s *v1.PodStatus) { s.Conditions = parseConditions("Ready=True") }, true},
		"shared condition":  {func(s *v1.PodStatus) { s.Conditions = parseConditions("DisruptionTarget=True") }, true},
	} {
		api := startedStatus(t)
		row.change(api)
		if got := podrules.NeedsReconcile(pod, api, cached); got != row.want {
			t.Errorf("%s differs: NeedsReconcile = %v, want %v", story, got, row.want)
		}
	}
}

func TestR4_NoDiffIsMadeNotEvenOfADifference(t *testing.T) {
	pod, api, cached := benchPair()
	if allocs := testing.AllocsPerRun(50, func() { podrules.NeedsReconcile(pod, api, cached) }); allocs != 0 {
		t.Errorf("a difference costs %v allocations, want 0", allocs)
	}
}

func TestR5_WhatMergeKeepsBackLeavesNothingToSend(t *testing.T) {
	for _, row := range []struct {
		story, api, cached string
		couldRun           bool
	}{
		{"X5: a withheld phase", "Running Ready=False", "Failed/Evicted Ready=False", true},
		{"X2: the API's DisruptionTarget", "Running DisruptionTarget=True", "Running", false},
		{"X2: a withheld DisruptionTarget", "Running", "Failed DisruptionTarget=True", true},
		{"X7: a final phase", "Failed/Evicted", "Running", false},
	} {
		api, cached := parsePhase(row.api), parsePhase(row.cached)
		if !podrules.NeedsReconcile(&v1.Pod{}, api, cached) {
			t.Errorf("%s: want a difference", row.story)
		}
		merged := podrules.Merge(&v1.Pod{}, api, cached, row.couldRun, noon)
		checkPatchIs(t, row.story, api, &merged, "")
	}
}
