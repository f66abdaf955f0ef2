package podstatus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// merging is one row: what the API holds, what the node says, what is to be written.
type merging struct {
	story       string
	api, cached string // phase and conditions
	couldRun    bool
	want        string
}

// parsePhase reads a phase, which may carry a reason (Failed/Evicted), and conditions.
func parsePhase(words string) *v1.PodStatus {
	phase, conditions, _ := strings.Cut(words, " ")
	phase, reason, _ := strings.Cut(phase, "/")
	status := &v1.PodStatus{Phase: v1.PodPhase(phase), Reason: reason, Conditions: parseConditions(conditions)}
	if reason != "" {
		status.Message = "because of " + reason
	}
	return status
}

func describePhase(status *v1.PodStatus) string {
	words := string(status.Phase)
	if status.Reason != "" {
		words += "/" + status.Reason
	}
	for _, c := range status.Conditions {
		words += " " + string(c.Type) + "=" + string(c.Status)
		if c.Reason != "" {
			words += "(" + c.Reason + ")"
		}
	}
	return words
}

func (row merging) run(t *testing.T) {
	t.Helper()
	got := podrules.Merge(&v1.Pod{}, parsePhase(row.api), parsePhase(row.cached), row.couldRun, noon)
	check(t, row.story, describePhase(&got), row.want)
	if (got.Message != "") != (got.Reason != "") || !strings.HasSuffix(got.Message, got.Reason) {
		t.Errorf("%s: message %q does not belong to reason %q", row.story, got.Message, got.Reason)
	}
}

func TestX1_ForeignConditionsComeFromTheAPIAndOwnedOnesFromTheNode(t *testing.T) {
	for _, row := range []merging{
		{story: "owned ones go last, in the node's order",
			api: "Running Ready=False x.io/a=True Initialized=True x.io/b=False", cached: "Running Initialized=True Ready=True",
			want: "Running x.io/a=True x.io/b=False Initialized=True Ready=True"},
		{story: "the node's idea of a foreign condition counts for nothing",
			api: "Running x.io/a=True", cached: "Running x.io/a=False x.io/b=True Ready=True",
			want: "Running x.io/a=True Ready=True"},
		{story: "of two with one type the node's last counts (E7)",
			api: "Running", cached: "Running Ready=False Initialized=True Ready=True",
			want: "Running Initialized=True Ready=True"},
	} {
		row.run(t)
	}
}

func TestX2_DisruptionTargetIsWrittenOnlyWithTheTerminalPhase(t *testing.T) {
	for _, row := range []merging{
		{story: "the phase becomes terminal", api: "Running", cached: "Failed DisruptionTarget=True",
			want: "Failed DisruptionTarget=True"},
		{story: "and replaces the API's in its place", api: "Running DisruptionTarget=False x.io/a=True",
			cached: "Failed Ready=False DisruptionTarget=True", want: "Failed DisruptionTarget=True x.io/a=True Ready=False"},
		{story: "a container could run", api: "Running", cached: "Failed DisruptionTarget=True", couldRun: true, want: "Running"},
		{story: "the phase does not become terminal", api: "Running", cached: "Running DisruptionTarget=True", want: "Running"},
		{story: "the phase was terminal", api: "Failed", cached: "Failed DisruptionTarget=True", want: "Failed"},
		{story: "the API's is kept", api: "Running DisruptionTarget=True", cached: "Running Ready=True",
			want: "Running DisruptionTarget=True Ready=True"},
		{story: "the API's is kept when the node has none", api: "Running DisruptionTarget=True", cached: "Failed",
			want: "Failed DisruptionTarget=True"},
	} {
		row.run(t)
	}
}

func TestX2_DisruptionTargetTakesItsTimeFromTheWrite(t *testing.T) {
	cached := parsePhase("Failed DisruptionTarget=True")
	cached.Conditions[0].LastTransitionTime = earlier // when the node decided; the write had to wait
	got := podrules.Merge(&v1.Pod{}, parsePhase("Running"), cached, false, noon.Add(time.Millisecond))
	checkTime(t, "new to the API", got.Conditions[0].LastTransitionTime, noon)

	api := parsePhase("Running DisruptionTarget=True")
	api.Conditions[0].LastTransitionTime = earlier
	got = podrules.Merge(&v1.Pod{}, api, cached, false, noon)
	checkTime(t, "the API has it already", got.Conditions[0].LastTransitionTime, earlier.Time)
}

func TestX3_AnOwnedConditionThatTheNodeLacksGoesAway(t *testing.T) {
	merging{story: "a rejected pod loses PodScheduled",
		api: "Pending PodScheduled=True x.io/a=True", cached: "Failed/OutOfcpu", want: "Failed/OutOfcpu x.io/a=True"}.run(t)
}

func TestX4_ClaimStatusesAreTheAPIs(t *testing.T) {
	api := &v1.PodStatus{
		ResourceClaimStatuses:                []v1.PodResourceClaimStatus{{Name: "gpu"}},
		ExtendedResourceClaimStatus:          &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"},
		NodeAllocatableResourceClaimStatuses: []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "y"}},
	}
	for story, cached := range map[string]*v1.PodStatus{
		"the node has none": {},
		"the node has others": {
			ResourceClaimStatuses:                []v1.PodResourceClaimStatus{{Name: "old"}},
			ExtendedResourceClaimStatus:          &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "old"},
			NodeAllocatableResourceClaimStatuses: []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "old"}},
		},
	} {
		if got := podrules.Merge(&v1.Pod{}, api, cached, false, noon); !equality.Semantic.DeepEqual(&got, api) {
			t.Errorf("%s: got %+v, want %+v", story, got, api)
		}
	}
}

func TestX5_ATerminalPhaseIsWithheldWhileAContainerCouldRun(t *testing.T) {
	for _, row := range []merging{
		{story: "could run", api: "Running", cached: "Failed/Evicted Ready=False", couldRun: true, want: "Running Ready=False"},
		{story: "the API's reason stays too", api: "Pending/Waits", cached: "Succeeded", couldRun: true, want: "Pending/Waits"},
		{story: "none runs", api: "Running", cached: "Failed/Evicted", want: "Failed/Evicted"},
		{story: "not terminal", api: "Pending", cached: "Running/Slow", couldRun: true, want: "Running/Slow"},
		{story: "already terminal", api: "Failed", cached: "Failed/Evicted", couldRun: true, want: "Failed/Evicted"},
		{story: "a withheld phase says nothing about readiness", api: "Running", cached: "Failed Ready=True", couldRun: true,
			want: "Running Ready=True"},
	} {
		row.run(t)
		becomes := !strings.HasPrefix(row.api, "Failed") && !strings.HasPrefix(row.cached, "Running")
		if got, want := podrules.Withheld(parsePhase(row.api), parsePhase(row.cached), row.couldRun), row.couldRun && becomes; got != want {
			t.Errorf("%s: Withheld = %v, want %v", row.story, got, want)
		}
	}
}

func TestX6_ATerminalPodIsNeverReady(t *testing.T) {
	for _, row := range []merging{
		{story: "both true", api: "Running", cached: "Failed Ready=True Initialized=True ContainersReady=True",
			want: "Failed Ready=False(PodFailed) Initialized=True ContainersReady=False(PodFailed)"},
		{story: "succeeded", api: "Running", cached: "Succeeded Ready=True ContainersReady=True",
			want: "Succeeded Ready=False(PodCompleted) ContainersReady=False(PodCompleted)"},
		{story: "one true, the other missing", api: "Running", cached: "Failed Ready=True",
			want: "Failed Ready=False(PodFailed) ContainersReady=False(PodFailed)"},
		{story: "only the containers", api: "Running", cached: "Failed Ready=False ContainersReady=True",
			want: "Failed Ready=False(PodFailed) ContainersReady=False(PodFailed)"},
		{story: "both false already", api: "Running", cached: "Failed Ready=False ContainersReady=False",
			want: "Failed Ready=False ContainersReady=False"},
		{story: "the API's phase is the terminal one", api: "Succeeded", cached: "Running Ready=True ContainersReady=True",
			want: "Succeeded Ready=False(PodCompleted) ContainersReady=False(PodCompleted)"},
		{story: "neither is there", api: "Running", cached: "Failed", want: "Failed"},
	} {
		row.run(t)
	}
}

func TestX6_TheTerminalFormsCarryGenerationAndTime(t *testing.T) {
	pod := parsePod(t, "gen=4")
	api := parsePhase("Running Ready=True ContainersReady=False")
	cached := parsePhase("Failed Ready=True ContainersReady=False")
	for i := range api.Conditions {
		api.Conditions[i].LastTransitionTime, cached.Conditions[i].LastTransitionTime = earlier, earlier
	}
	got := podrules.Merge(pod, api, cached, false, noon.Add(time.Millisecond))
	checkTime(t, "Ready turns False with this write", got.Conditions[0].LastTransitionTime, noon)
	checkTime(t, "ContainersReady was False", got.Conditions[1].LastTransitionTime, earlier.Time)
	for _, c := range got.Conditions {
		if c.ObservedGeneration != 4 {
			t.Errorf("%s carries generation %d, want that of the pod, 4", c.Type, c.ObservedGeneration)
		}
	}
}

func TestX7_ATerminalPhaseInTheAPIIsFinal(t *testing.T) {
	for _, row := range []merging{
		{story: "not left for Running", api: "Failed/Evicted", cached: "Running", want: "Failed/Evicted"},
		{story: "not left for Succeeded", api: "Failed/Evicted", cached: "Succeeded/Done", want: "Failed/Evicted"},
		{story: "not left for Failed", api: "Succeeded", cached: "Failed/Evicted", want: "Succeeded"},
		{story: "may be explained better", api: "Failed", cached: "Failed/Evicted", want: "Failed/Evicted"},
	} {
		row.run(t)
		row.couldRun = true
		row.run(t)
	}
}

func TestX8_MergeWritesIntoNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, api, cached := drawPod(t), drawStatus(t), drawStatus(t)
		apiBefore, cachedBefore := api.DeepCopy(), cached.DeepCopy()
		podrules.Merge(pod, api, cached, rapid.Bool().Draw(t, "could run"), epoch)
		if !equality.Semantic.DeepEqual(api, apiBefore) || !equality.Semantic.DeepEqual(cached, cachedBefore) {
			t.Fatalf("Merge wrote into its input")
		}
	})
}

func TestX8_AppendingToTheResultReachesNoInput(t *testing.T) {
	got := podrules.Merge(&v1.Pod{}, parsePhase("Running Ready=True"), parsePhase("Running Ready=True"), false, noon)
	if cap(got.Conditions) != len(got.Conditions) {
		t.Errorf("the conditions have room for %d more: two holders that append would write over each other",
			cap(got.Conditions)-len(got.Conditions))
	}
}

func TestX9_CouldRunIsTheCallersAnswerAlsoForAMirror(t *testing.T) {
	mirror := parsePod(t, "mirror")
	got := podrules.Merge(mirror, parsePhase("Running"), parsePhase("Failed"), true, noon)
	check(t, "the static pod behind the mirror could still run", describePhase(&got), "Running")
}

// A node's clock was once ahead and was corrected: the next change of readiness has a time
// that minReadySeconds can be counted from.
func TestIssue119514_ATimeInTheFutureEndsWithTheNextChange(t *testing.T) {
	pod := &v1.Pod{}
	ahead := podrules.Next(pod, &v1.PodStatus{}, parsePhase("Running Ready=True"), noon.AddDate(10, 0, 0))
	api := podrules.Merge(pod, &v1.PodStatus{}, &ahead, false, noon.AddDate(10, 0, 0))
	for i, phase := range []string{"Running Ready=False", "Running Ready=True"} {
		now := noon.Add(time.Duration(i) * time.Minute)
		next := podrules.Next(pod, &ahead, parsePhase(phase), now)
		api = podrules.Merge(pod, &api, &next, false, now)
		checkTime(t, phase, api.Conditions[0].LastTransitionTime, now)
		ahead = next
	}
}

func TestIssue119514_TransitionTimesNeverRunBackwards(t *testing.T) {
	first, second, future := noon.Add(-2*time.Hour), noon.Add(-time.Hour), noon.AddDate(10, 0, 0)
	for _, row := range []struct {
		story            string
		api, cached      string
		apiTime, ourTime time.Time
		want             time.Time
	}{
		{"same status, the API's is later", "True", "True", second, first, second},
		{"same status, ours is later: it went back and forth unseen", "True", "True", first, second, second},
		{"other status, ours is later", "True", "False", first, second, second},
		{"other status, the API's is later: the transition is this write", "True", "False", second, first, noon},
		{"same status, the API's is in the future", "True", "True", future, second, second},
		{"same status, the API's is in the future, ours is not known", "True", "True", future, time.Time{}, noon},
		{"other status, the API's is in the future", "True", "False", future, second, noon},
	} {
		api, cached := parsePhase("Running Ready="+row.api), parsePhase("Running Ready="+row.cached)
		api.Conditions[0].LastTransitionTime = metav1.NewTime(row.apiTime)
		cached.Conditions[0].LastTransitionTime = metav1.NewTime(row.ourTime)
		got := podrules.Merge(&v1.Pod{}, api, cached, false, noon)
		checkTime(t, row.story, got.Conditions[0].LastTransitionTime, row.want)
		if string(got.Conditions[0].Status) != row.cached {
			t.Errorf("%s: status %s, want %s", row.story, got.Conditions[0].Status, row.cached)
		}
	}
}

func TestMerge_KeepsWhatTheAPIServerRefusesToClear(t *testing.T) {
	api := parsePhase("Running Ready=True")
	api.QOSClass, api.ObservedGeneration, api.Conditions[0].ObservedGeneration = v1.PodQOSBurstable, 3, 2
	cached := parsePhase("Running Ready=True")
	got := podrules.Merge(&v1.Pod{}, api, cached, false, noon)
	if patch := mustPatch(t, api, &got); patch != nil {
		t.Errorf("the server would ignore this patch forever: %s", patch)
	}
	cached.ObservedGeneration, cached.QOSClass, cached.Conditions[0].ObservedGeneration = 4, v1.PodQOSGuaranteed, 4
	got = podrules.Merge(&v1.Pod{}, api, cached, false, noon)
	if got.ObservedGeneration != 4 || got.QOSClass != v1.PodQOSGuaranteed || got.Conditions[0].ObservedGeneration != 4 {
		t.Errorf("what the node does say was not taken: %+v", got)
	}
}

// sameInAPI compares two statuses in every field, with conditions in any order and, of the
// owned and shared ones, the last of each type.
func sameInAPI(a, b *v1.PodStatus) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, s := range []*v1.PodStatus{a, b} {
		last := map[v1.PodConditionType]int{}
		for i, c := range s.Conditions {
			last[c.Type] = i
		}
		var kept []v1.PodCondition
		for i, c := range s.Conditions {
			if isForeign(c.Type) || last[c.Type] == i {
				kept = append(kept, c)
			}
		}
		slices.SortStableFunc(kept, func(x, y v1.PodCondition) int {
			return strings.Compare(string(x.Type), string(y.Type))
		})
		s.Conditions = kept
	}
	return equality.Semantic.DeepEqual(a, b)
}

func isForeign(kind v1.PodConditionType) bool {
	return !podstatus.IsOwned(kind) && !podrules.IsShared(kind)
}

// checkMerge writes a cached status over an API status, once and again.
func checkMerge(t *rapid.T) {
	pod := drawPod(t)
	first := drawStatus(t)
	api := stored(t, first)
	cached := podrules.Normalize(pod, drawOther(t, first))
	couldRun := rapid.Bool().Draw(t, "could run")
	merged := podrules.Merge(pod, api, &cached, couldRun, epoch)
	checkMergeInvariants(t, api, &merged, couldRun)

	written := apply(t, api, mustPatch(t, api, &merged))
	again := podrules.Merge(pod, written, &cached, couldRun, epoch.Add(time.Hour))
	if patch := mustPatch(t, written, &again); patch != nil {
		t.Fatalf("writing the same status again is not settled: %s\napi: %s\ncached: %s\nwritten: %s",
			patch, mustMarshal(t, api), mustMarshal(t, cached), mustMarshal(t, written))
	}
}

func checkMergeInvariants(t *rapid.T, api, merged *v1.PodStatus, couldRun bool) {
	switch {
	case podstatus.IsTerminal(api.Phase) && merged.Phase != api.Phase:
		t.Fatalf("terminal is final: the API says %s, merged says %s", api.Phase, merged.Phase)
	case couldRun && !podstatus.IsTerminal(api.Phase) && podstatus.IsTerminal(merged.Phase):
		t.Fatalf("%s is published while a container could run", merged.Phase)
	}
	for _, c := range merged.Conditions {
		if podstatus.IsTerminal(merged.Phase) && c.Status == v1.ConditionTrue &&
			(c.Type == v1.PodReady || c.Type == v1.ContainersReady) {
			t.Fatalf("a terminal pod has %s=True", c.Type)
		}
		if !podstatus.IsOwned(c.Type) {
			continue
		}
		for _, before := range slices.Backward(api.Conditions) {
			if before.Type != c.Type {
				continue
			}
			if !before.LastTransitionTime.After(epoch) && c.LastTransitionTime.Before(&before.LastTransitionTime) {
				t.Fatalf("the transition time of %s runs backwards from %v to %v", c.Type, before.LastTransitionTime, c.LastTransitionTime)
			}
			break
		}
	}
	if got, want := foreignOf(merged.Conditions), foreignOf(api.Conditions); !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("foreign conditions changed from %v to %v", want, got)
	}
}

func foreignOf(conditions []v1.PodCondition) []v1.PodCondition {
	var foreign []v1.PodCondition
	for _, c := range conditions {
		if isForeign(c.Type) {
			foreign = append(foreign, c)
		}
	}
	return foreign
}

func TestMergeIsStableAndKeepsTheInvariants(t *testing.T) { rapid.Check(t, checkMerge) }

func FuzzMerge(f *testing.F) { fuzz(f, checkMerge) }
