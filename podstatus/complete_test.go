package podstatus_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

func TestCompleteFillsInWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		story    string
		pod      string
		phase    v1.PodPhase
		reported string
		previous string
		want     string
		phaseIs  v1.PodPhase
		ready    v1.ConditionStatus
	}{
		{"nothing", "app=a app=b", "", "nil", "nil", "a:waiting(ContainerCreating) b:waiting(ContainerCreating)", v1.PodPending, v1.ConditionFalse},
		{"phase and one of two containers", "app=a app=b", v1.PodRunning, "a:running,ready,started", "nil",
			"a:running,ready,started b:waiting(ContainerCreating)", v1.PodRunning, v1.ConditionFalse},
		{"the other one was reported before", "app=a app=b", "", "a:running,ready,started", "b:running,ready,started",
			"a:running,ready,started b:running,ready,started", v1.PodRunning, v1.ConditionTrue},
		{"a pod that succeeds", "restart=Never app=a", v1.PodSucceeded, "nil", "a:running,ready,started",
			"a:exited(0;Completed)", v1.PodSucceeded, v1.ConditionFalse},
		{"a pod that fails", "restart=Never app=a app=b", v1.PodFailed, "nil", "a:running,ready,started",
			"a:running,ready,started b:waiting(ContainerCreating)", v1.PodFailed, v1.ConditionFalse},
		{"a container that has ended", "restart=Never app=a", "", "a:exited(3)", "a:running,ready,started", "a:exited(3)", v1.PodFailed, v1.ConditionFalse},
	} {
		status := v1.PodStatus{Phase: c.phase, ContainerStatuses: parseStatuses(t, c.reported)}
		previous := v1.PodStatus{ContainerStatuses: parseStatuses(t, c.previous)}
		got := podstatus.Complete(parsePod(t, c.pod), status, previous, noon)
		check(t, c.story, ofContainers(got.ContainerStatuses), c.want)
		check(t, c.story+": phase", string(got.Phase), string(c.phaseIs))
		check(t, c.story+": ready", string(podstatus.FindCondition(got.Conditions, v1.PodReady).Status), string(c.ready))
	}
}

func TestCompleteKnowsThePlaceOfAPod(t *testing.T) {
	pod := parsePod(t, "restart=Never app=a")
	place := func(status, previous v1.PodStatus) string {
		got := podstatus.Complete(pod, status, previous, noon)
		return string(podstatus.FindCondition(got.Conditions, v1.PodReadyToStartContainers).Status)
	}
	before := v1.PodStatus{Conditions: parseConditions("PodReadyToStartContainers=True")}
	check(t, "nothing is known", place(v1.PodStatus{}, v1.PodStatus{}), "False")
	check(t, "a container runs", place(v1.PodStatus{ContainerStatuses: parseStatuses(t, "a:running")}, v1.PodStatus{}), "True")
	check(t, "it has an address", place(v1.PodStatus{PodIP: "10.0.0.7"}, v1.PodStatus{}), "True")
	check(t, "it was there before", place(v1.PodStatus{}, before), "True")
	check(t, "it has ended", place(v1.PodStatus{Phase: v1.PodFailed}, before), "False")
}

// generatedTypes are the conditions that every status has.
var generatedTypes = []v1.PodConditionType{
	v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
}

// half draws a part of what a reporter may know.
func half(t *rapid.T, whole *v1.PodStatus) v1.PodStatus {
	status := *whole.DeepCopy()
	drop := func(label string) bool { return rapid.Bool().Draw(t, "drop "+label) }
	for _, list := range []*[]v1.ContainerStatus{&status.InitContainerStatuses, &status.ContainerStatuses, &status.EphemeralContainerStatuses} {
		*list = slices.DeleteFunc(*list, func(s v1.ContainerStatus) bool { return drop("container") })
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c v1.PodCondition) bool { return drop(string(c.Type)) })
	if drop("phase") {
		status.Phase = ""
	}
	if drop("addresses") {
		status.PodIP, status.PodIPs, status.HostIP, status.HostIPs = "", nil, "", nil
	}
	return status
}

// TestCompleteDeletesNothing reports parts of statuses over what the API holds: what others
// own stays, every container and every owned condition is there, and what was reported counts.
func TestCompleteDeletesNothing(t *testing.T) { rapid.Check(t, completeDeletesNothing) }

func FuzzComplete(f *testing.F) { fuzz(f, completeDeletesNothing) }

func completeDeletesNothing(t *rapid.T) {
	pod := drawSmallPod(t)
	api := drawReport(t, pod)
	for _, kind := range some(t, "foreign", []v1.PodConditionType{"example.com/gate", "example.com/lb-attached", v1.DisruptionTarget}) {
		api.Conditions = append(api.Conditions, v1.PodCondition{Type: kind, Status: v1.ConditionTrue, Reason: "Theirs"})
	}
	pod.Status = *api
	reported := half(t, drawReport(t, pod))
	pristine, podBefore, apiBefore := reported.DeepCopy(), pod.DeepCopy(), api.DeepCopy()

	got := podstatus.Complete(pod, reported, *api, noon)

	if !equality.Semantic.DeepEqual(&reported, pristine) || !equality.Semantic.DeepEqual(pod, podBefore) || !equality.Semantic.DeepEqual(api, apiBefore) {
		t.Fatal("an argument was changed")
	}
	wantContainers(t, pod.Spec.InitContainers, got.InitContainerStatuses)
	wantContainers(t, pod.Spec.Containers, got.ContainerStatuses)
	for _, kind := range generatedTypes {
		if n := count(got.Conditions, kind); n != 1 {
			t.Fatalf("%s is there %d times: %v", kind, n, describeAll(got.Conditions))
		}
	}
	wantReported(t, pod, &reported, &got)
	if again := podstatus.Complete(pod, got, *api, noon); !podrules.Equal(&got, &again) {
		t.Fatalf("a status that is complete is completed again:\n%+v\n%+v", got, again)
	}
	merged := podrules.Merge(pod, api, &got, false, noon)
	for _, c := range api.Conditions {
		if podstatus.IsOwned(c.Type) && !slices.Contains(generatedTypes, c.Type) {
			continue // a resize that is over, a restart of all in a pod that has no such rule
		}
		left := podstatus.FindCondition(merged.Conditions, c.Type)
		if left == nil || !podstatus.IsOwned(c.Type) && !podrules.IsShared(c.Type) && *left != c {
			t.Fatalf("%s of the API is gone or changed: %v", c.Type, describeAll(merged.Conditions))
		}
	}
}

func wantContainers(t *rapid.T, specs []v1.Container, statuses []v1.ContainerStatus) {
	for _, spec := range specs {
		n := 0
		for _, s := range statuses {
			if s.Name == spec.Name {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("container %s has %d statuses: %s", spec.Name, n, describeStates(statuses))
		}
	}
}

// wantReported checks that what was reported counts, save for a phase that is final.
func wantReported(t *rapid.T, pod *v1.Pod, reported, got *v1.PodStatus) {
	normal := podrules.Normalize(pod, reported)
	for _, lists := range [][2][]v1.ContainerStatus{
		{normal.InitContainerStatuses, got.InitContainerStatuses},
		{normal.ContainerStatuses, got.ContainerStatuses},
		{normal.EphemeralContainerStatuses, got.EphemeralContainerStatuses},
	} {
		for _, want := range lists[0] {
			if !slices.ContainsFunc(lists[1], func(s v1.ContainerStatus) bool { return equality.Semantic.DeepEqual(s, want) }) {
				t.Fatalf("the report of container %s is lost: %s", want.Name, describeStates(lists[1]))
			}
		}
	}
	if reported.Phase != "" && got.Phase != reported.Phase && !podstatus.IsTerminal(pod.Status.Phase) {
		t.Fatalf("phase %s was reported, got %s", reported.Phase, got.Phase)
	}
	for _, want := range normal.Conditions {
		if c := podstatus.FindCondition(got.Conditions, want.Type); c == nil || c.Status != want.Status || c.Reason != want.Reason {
			t.Fatalf("the report of %s is lost: %v", want.Type, describeAll(got.Conditions))
		}
	}
}

func count(conditions []v1.PodCondition, kind v1.PodConditionType) (n int) {
	for _, c := range conditions {
		if c.Type == kind {
			n++
		}
	}
	return n
}

// TestGenerateIsTotal generates statuses from whatever facts there are: they are complete
// and final, and nothing is written to.
func TestGenerateIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawSmallPod(t)
		previous := drawReport(t, pod)
		var facts podstatus.Facts
		for _, name := range some(t, "attempted", allNames(pod)) {
			for n := range rapid.IntRange(1, 3).Draw(t, "attempts") {
				facts.Attempts = append(facts.Attempts, podstatus.Attempt{
					Container: name, ID: name + string(rune('0'+n)), Number: n,
					State:    anyOf(t, "state", podstatus.AttemptCreated, podstatus.AttemptRunning, podstatus.AttemptExited),
					ExitCode: drawExitCode(t),
				})
			}
		}
		facts.Sandbox = rapid.Bool().Draw(t, "sandbox")
		facts.Ended = rapid.Bool().Draw(t, "ended")
		podBefore, previousBefore := pod.DeepCopy(), previous.DeepCopy()
		got := podstatus.Generate(pod, facts, *previous, noon)
		if !equality.Semantic.DeepEqual(pod, podBefore) || !equality.Semantic.DeepEqual(previous, previousBefore) {
			t.Fatal("an argument was changed")
		}
		wantContainers(t, pod.Spec.InitContainers, got.InitContainerStatuses)
		wantContainers(t, pod.Spec.Containers, got.ContainerStatuses)
		for _, kind := range generatedTypes {
			if n := count(got.Conditions, kind); n != 1 {
				t.Fatalf("%s is there %d times: %v", kind, n, describeAll(got.Conditions))
			}
		}
		if podstatus.IsTerminal(previous.Phase) && got.Phase != previous.Phase {
			t.Fatalf("phase %s was left for %s", previous.Phase, got.Phase)
		}
		if whole := podstatus.Complete(pod, got, *previous, noon); !podrules.Equal(&got, &whole) {
			t.Fatalf("a generated status was not complete:\n%+v\n%+v", got, whole)
		}
	})
}

func allNames(pod *v1.Pod) []string {
	var names []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, c.Name)
	}
	return names
}
