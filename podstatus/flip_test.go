package podstatus_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

var earlier = metav1.NewTime(noon.Add(-time.Hour))

// runningStatus is a cached status of a sidecar and a regular container that both run.
func runningStatus(t fataler, conditions string) *v1.PodStatus {
	status := &v1.PodStatus{
		Phase:                 v1.PodRunning,
		ObservedGeneration:    1,
		Conditions:            parseConditions(conditions),
		InitContainerStatuses: parseStatuses(t, "proxy:running,ready,started"),
		ContainerStatuses:     parseStatuses(t, "main:running,ready side:running,ready"),
	}
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = earlier
	}
	return status
}

const flipPod = "gen=2 sidecar=proxy app=main app=side"

func TestH1_UnknownContainerOrSameValueChangesNothing(t *testing.T) {
	cached := runningStatus(t, "Ready=True ContainersReady=True")
	for _, row := range []struct {
		story, id string
		ready     bool
		want      podrules.Flip
	}{
		{"same value", "c://main", true, podrules.NotFlipped},
		{"same value of a sidecar", "c://proxy", true, podrules.NotFlipped},
		{"unknown", "c://gone", false, podrules.UnknownContainer},
		{"no ID", "", false, podrules.UnknownContainer},
		{"flip", "c://main", false, podrules.Flipped},
	} {
		got, flip := podrules.WithContainerReady(parsePod(t, flipPod), cached, row.id, row.ready, noon)
		if flip != row.want {
			t.Errorf("%s: got %v, want %v", row.story, flip, row.want)
		}
		if same := equality.Semantic.DeepEqual(&got, cached); same != (row.want != podrules.Flipped) {
			t.Errorf("%s (%v): result equals the cached status: %t", row.story, flip, same)
		}
	}
}

func TestH2_ReadinessFlipRegeneratesBothConditions(t *testing.T) {
	const unready = `(ContainersNotReady) "containers with unready status: [main]" gen=2`
	for _, row := range []struct {
		story, conditions string
		want              []string
	}{
		{"in place", "PodScheduled=True Ready=True Initialized=True ContainersReady=True",
			[]string{"PodScheduled=True", "Ready=False " + unready, "Initialized=True", "ContainersReady=False " + unready}},
		{"appended", "Initialized=True",
			[]string{"Initialized=True", "Ready=False " + unready, "ContainersReady=False " + unready}},
		{"one of each", "ContainersReady=True x.io/lb=False",
			[]string{"ContainersReady=False " + unready, "x.io/lb=False", "Ready=False " + unready}},
	} {
		cached := runningStatus(t, row.conditions)
		got, flip := podrules.WithContainerReady(parsePod(t, flipPod), cached, "c://main", false, noon.Add(time.Millisecond))
		if flip != podrules.Flipped {
			t.Fatalf("%s: got %v, want a flip", row.story, flip)
		}
		if len(got.Conditions) != len(row.want) {
			t.Fatalf("%s: got conditions %v, want %v", row.story, got.Conditions, row.want)
		}
		for i, c := range got.Conditions {
			check(t, row.story, describe(c), row.want[i])
			want := earlier.Time
			if c.Type == v1.PodReady || c.Type == v1.ContainersReady {
				want = noon
			}
			if !c.LastTransitionTime.Time.Equal(want) {
				t.Errorf("%s: %s: transition time: got %v, want %v", row.story, c.Type, c.LastTransitionTime, want)
			}
		}
		if got.ContainerStatuses[0].Ready || !got.ContainerStatuses[1].Ready {
			t.Errorf("%s: ready: got main %t side %t, want only side", row.story, got.ContainerStatuses[0].Ready, got.ContainerStatuses[1].Ready)
		}
	}
}

func TestH2_SidecarCountsAndTransitionTimeStaysWhileStatusDoes(t *testing.T) {
	pod := parsePod(t, flipPod)
	cached := runningStatus(t, "Ready=True ContainersReady=True")
	first, _ := podrules.WithContainerReady(pod, cached, "c://proxy", false, noon)
	second, _ := podrules.WithContainerReady(pod, &first, "c://main", false, noon.Add(time.Minute))
	got := podstatus.FindCondition(second.Conditions, v1.PodReady)
	check(t, "both unready", describe(*got), `Ready=False (ContainersNotReady) "containers with unready status: [proxy main]" gen=2`)
	if !got.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("transition time after the second flip: got %v, want that of the first, %v", got.LastTransitionTime, noon)
	}
	third, _ := podrules.WithContainerReady(pod, &second, "c://proxy", true, noon.Add(2*time.Minute))
	last, _ := podrules.WithContainerReady(pod, &third, "c://main", true, noon.Add(3*time.Minute))
	got = podstatus.FindCondition(last.Conditions, v1.PodReady)
	check(t, "ready again", describe(*got), "Ready=True gen=2")
	if !got.LastTransitionTime.Time.Equal(noon.Add(3 * time.Minute)) {
		t.Errorf("transition time when ready again: got %v, want %v", got.LastTransitionTime, noon.Add(3*time.Minute))
	}
}

func TestH2_ReadinessGatesOfAPodThatTheAPINeverHadAreCached(t *testing.T) {
	pod := parsePod(t, flipPod+" gate=x.io/lb")
	cached := runningStatus(t, "Ready=False ContainersReady=False x.io/lb=False")
	cached.ContainerStatuses[0].Ready = false
	got, _ := podrules.WithContainerReady(pod, cached, "c://main", true, noon)
	check(t, "containers", describe(*podstatus.FindCondition(got.Conditions, v1.ContainersReady)), "ContainersReady=True gen=2")
	check(t, "pod", describe(*podstatus.FindCondition(got.Conditions, v1.PodReady)),
		`Ready=False (ReadinessGatesNotReady) "the status of pod readiness gate \"x.io/lb\" is not \"True\", but False" gen=2`)
}

func TestH3_StartupFlipTouchesNoConditionAndNilDiffersFromFalse(t *testing.T) {
	cached := runningStatus(t, "Ready=True ContainersReady=True")
	for _, row := range []struct {
		story, id string
		started   bool
		want      podrules.Flip
	}{
		{"never said, now yes", "c://main", true, podrules.Flipped},
		{"never said, now no", "c://main", false, podrules.Flipped},
		{"sidecar said yes", "c://proxy", true, podrules.NotFlipped},
		{"sidecar says no", "c://proxy", false, podrules.Flipped},
		{"unknown", "c://gone", true, podrules.UnknownContainer},
	} {
		got, flip := podrules.WithContainerStarted(parsePod(t, flipPod), cached, row.id, row.started, noon)
		if flip != row.want {
			t.Errorf("%s: got %v, want %v", row.story, flip, row.want)
		}
		if !equality.Semantic.DeepEqual(got.Conditions, cached.Conditions) {
			t.Errorf("%s: conditions changed: got %v, want %v", row.story, got.Conditions, cached.Conditions)
		}
		if flip != podrules.Flipped {
			continue
		}
		for _, c := range append(got.InitContainerStatuses, got.ContainerStatuses...) {
			if c.ContainerID == row.id && (c.Started == nil || *c.Started != row.started) {
				t.Errorf("%s: started: got %v, want %t", row.story, c.Started, row.started)
			}
		}
	}
}

func TestH4_AReplacedContainersResultIsDropped(t *testing.T) {
	cached := runningStatus(t, "Ready=True")
	cached.ContainerStatuses[0].ContainerID = "c://main-2"
	if _, flip := podrules.WithContainerReady(parsePod(t, flipPod), cached, "c://main", false, noon); flip != podrules.UnknownContainer {
		t.Errorf("a result for the container before: got %v, want %v", flip, podrules.UnknownContainer)
	}
}

func TestH5_FlipsLeaveTheStatusGeneration(t *testing.T) {
	cached := runningStatus(t, "Ready=True ContainersReady=True")
	ready, _ := podrules.WithContainerReady(parsePod(t, flipPod), cached, "c://main", false, noon)
	started, _ := podrules.WithContainerStarted(parsePod(t, flipPod), cached, "c://main", true, noon)
	if ready.ObservedGeneration != 1 || started.ObservedGeneration != 1 {
		t.Errorf("got generations %d and %d, want 1 as cached", ready.ObservedGeneration, started.ObservedGeneration)
	}
	if got := ready.Conditions[0].ObservedGeneration; got != 2 {
		t.Errorf("generation of the regenerated condition: got %d, want the pod's 2", got)
	}
}

func TestFlip_SharesWhatDoesNotChangeAndHasNoSpareCapacity(t *testing.T) {
	cached := runningStatus(t, "Ready=True ContainersReady=True")
	got, _ := podrules.WithContainerReady(parsePod(t, flipPod), cached, "c://main", false, noon)
	if &got.InitContainerStatuses[0] != &cached.InitContainerStatuses[0] {
		t.Error("init statuses were copied although nothing in them changed")
	}
	if &got.ContainerStatuses[0] == &cached.ContainerStatuses[0] || &got.Conditions[0] == &cached.Conditions[0] {
		t.Error("a list that changed is shared with the cached status")
	}
	for _, conditions := range []string{"Ready=True ContainersReady=True", "PodScheduled=True Initialized=True x=True"} {
		got, _ := podrules.WithContainerReady(parsePod(t, flipPod), runningStatus(t, conditions), "c://main", false, noon)
		if len(got.Conditions) != cap(got.Conditions) || len(got.ContainerStatuses) != cap(got.ContainerStatuses) {
			t.Errorf("spare capacity: conditions %d/%d, containers %d/%d; two appends to the shared result would collide",
				len(got.Conditions), cap(got.Conditions), len(got.ContainerStatuses), cap(got.ContainerStatuses))
		}
	}
}

func TestFlip_String(t *testing.T) {
	for flip, want := range map[podrules.Flip]string{
		podrules.Flipped: "flipped", podrules.NotFlipped: "not flipped",
		podrules.UnknownContainer: "unknown container", podrules.Flip(7): "invalid flip",
	} {
		check(t, "flip", flip.String(), want)
	}
}

func BenchmarkWithContainerReady(b *testing.B) {
	pod := parsePod(b, "gen=2 app=main")
	statuses := [2]*v1.PodStatus{}
	for i, ready := range []bool{false, true} {
		statuses[i] = runningStatus(b, "PodScheduled=True Initialized=True Ready=True ContainersReady=True")
		statuses[i].InitContainerStatuses = nil
		statuses[i].ContainerStatuses = statuses[i].ContainerStatuses[:1]
		statuses[i].ContainerStatuses[0].Ready = ready
	}
	for _, ready := range []bool{false, true} {
		cached := statuses[0]
		if !ready {
			cached = statuses[1]
		}
		b.Run(map[bool]string{false: "lost", true: "gained"}[ready], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				podrules.WithContainerReady(pod, cached, "c://main", ready, noon)
			}
		})
	}
}
