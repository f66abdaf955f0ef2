package podstatus_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

const unseen = "exited(137;ContainerStatusUnknown)"

// termination is one row: how a pod ends. States are those of init, then regular containers.
type termination struct {
	story, pod    string
	init, regular string
	phase         v1.PodPhase
	seen          map[string]int32
	want          string
	wantPhase     v1.PodPhase
}

func (row termination) run(t *testing.T) {
	t.Helper()
	pod := parsePod(t, row.pod)
	cached := &v1.PodStatus{
		Phase:                 row.phase,
		InitContainerStatuses: parseStatuses(t, row.init),
		ContainerStatuses:     parseStatuses(t, row.regular),
	}
	got := podrules.Terminate(pod, cached, observing(row.seen))
	check(t, row.story, describeStates(slices.Concat(got.InitContainerStatuses, got.ContainerStatuses)), row.want)
	check(t, row.story+": phase", string(got.Phase), string(row.wantPhase))
}

// observing knows the exit codes of some containers.
func observing(seen map[string]int32) func(string) (v1.ContainerStateTerminated, bool) {
	return func(id string) (v1.ContainerStateTerminated, bool) {
		code, ok := seen[id]
		return v1.ContainerStateTerminated{ExitCode: code, Reason: "Seen"}, ok
	}
}

func TestK1_TerminateStartsFromTheCacheElseFromThePod(t *testing.T) {
	pod := parsePod(t, "app=main")
	pod.Status = v1.PodStatus{Phase: v1.PodPending, Message: "pod", ContainerStatuses: parseStatuses(t, "main:waiting")}
	cached := &v1.PodStatus{Phase: v1.PodSucceeded, Message: "cached", ContainerStatuses: parseStatuses(t, "main:exited(0)")}
	check(t, "cached", podrules.Terminate(pod, cached, nil).Message, "cached")
	got := podrules.Terminate(pod, nil, nil)
	check(t, "not cached", got.Message, "pod")
	check(t, "not cached: states", describeStates(got.ContainerStatuses), "main:"+unseen)
	check(t, "not cached: phase", string(got.Phase), "Failed")
}

func TestK2_UnseenEndsAreFailures(t *testing.T) {
	termination{story: "running, waiting and ended", pod: "app=a app=b app=c", regular: "a:running b:waiting c:exited(0)", phase: v1.PodRunning,
		want: "a:" + unseen + " b:" + unseen + " c:exited(0)", wantPhase: v1.PodFailed}.run(t)
	got := podrules.Terminate(parsePod(t, "app=a"), &v1.PodStatus{ContainerStatuses: parseStatuses(t, "a:running")}, nil)
	check(t, "message", got.ContainerStatuses[0].State.Terminated.Message, "The container could not be located when the pod was terminated")
	if got.ContainerStatuses[0].State.Running != nil {
		t.Error("the ended container still has a running state")
	}
}

func TestK2_ObservedEndsReplaceTheGuess(t *testing.T) {
	for _, row := range []termination{
		{story: "one seen, one not", pod: "app=a app=b", regular: "a:running b:running", phase: v1.PodRunning,
			seen: map[string]int32{"c://a": 3}, want: "a:exited(3;Seen) b:" + unseen, wantPhase: v1.PodFailed},
		{story: "all seen to succeed", pod: "restart=Never app=a app=b", regular: "a:running b:running", phase: v1.PodRunning,
			seen: map[string]int32{"c://a": 0, "c://b": 0}, want: "a:exited(0;Seen) b:exited(0;Seen)", wantPhase: v1.PodSucceeded},
		{story: "all seen to succeed in a pod that would restart them", pod: "restart=Always app=a", regular: "a:running", phase: v1.PodRunning,
			seen: map[string]int32{"c://a": 0}, want: "a:exited(0;Seen)", wantPhase: v1.PodSucceeded},
		{story: "one seen to succeed, one unseen", pod: "restart=Never app=a app=b", regular: "a:running b:running", phase: v1.PodRunning,
			seen: map[string]int32{"c://a": 0}, want: "a:exited(0;Seen) b:" + unseen, wantPhase: v1.PodFailed},
		{story: "a reported end is not replaced", pod: "app=a", regular: "a:exited(1)", phase: v1.PodFailed,
			seen: map[string]int32{"c://a": 0}, want: "a:exited(1)", wantPhase: v1.PodFailed},
		{story: "another container's ID", pod: "app=a", regular: "a:running,id=c://a-2", phase: v1.PodRunning,
			seen: map[string]int32{"c://a": 0}, want: "a:" + unseen, wantPhase: v1.PodFailed},
		{story: "a container without ID has no recorded end", pod: "app=a", regular: "a:waiting", phase: v1.PodPending,
			seen: map[string]int32{"": 0}, want: "a:" + unseen, wantPhase: v1.PodFailed},
		{story: "init seen to fail before the pod was initialized", pod: "restart=Never init=i app=a", init: "i:running", regular: "a:waiting", phase: v1.PodPending,
			seen: map[string]int32{"c://i": 2}, want: "i:exited(2;Seen) a:waiting", wantPhase: v1.PodFailed},
		{story: "nothing seen, all reported to succeed: Failed as ever", pod: "restart=Always app=a", regular: "a:exited(0)", phase: v1.PodRunning,
			seen: nil, want: "a:exited(0)", wantPhase: v1.PodFailed},
	} {
		row.run(t)
	}
}

func TestK3_RegularContainersEndOnlyIfThePodHasInitialized(t *testing.T) {
	for _, row := range []struct {
		story, pod, init, regular string
		want                      bool
	}{
		{"no init containers", "app=a", "nil", "a:waiting", true},
		{"init runs", "init=i app=a", "i:running", "a:waiting", false},
		{"nothing known", "init=i app=a", "nil", "nil", false},
		{"regular runs", "init=i app=a", "i:waiting", "a:running", true},
		{"regular ran before", "init=i app=a", "i:waiting", "a:waiting,last(1)", true},
		{"regular without a state", "init=i app=a", "i:waiting", "a:none", true},
		{"last init exited 0", "init=i app=a", "i:exited(0)", "a:waiting", true},
		{"last init exited 0 before", "init=i app=a", "i:running,last(0)", "a:waiting", true},
		{"last init failed", "init=i app=a", "i:exited(1)", "a:waiting", false},
		{"only the first init exited 0", "init=i init=j app=a", "i:exited(0) j:waiting", "a:waiting", false},
		{"last is a started sidecar", "sidecar=s app=a", "s:running,started", "a:waiting", true},
		{"last is a sidecar that runs", "sidecar=s app=a", "s:running", "a:waiting", false},
		{"last is a sidecar that ended", "sidecar=s app=a", "s:exited(0),started", "a:waiting", false},
		{"last is a stranger", "init=i app=a", "ghost:exited(0)", "a:waiting", false},
		{"the order of init statuses does not hide the last one", "init=i sidecar=s app=a", "s:waiting i:exited(0)", "a:waiting", true},
	} {
		pod := parsePod(t, row.pod)
		status := &v1.PodStatus{InitContainerStatuses: parseStatuses(t, row.init), ContainerStatuses: parseStatuses(t, row.regular)}
		if got := podstatus.HasInitialized(pod, status); got != row.want {
			t.Errorf("%s: got %t, want %t", row.story, got, row.want)
		}
		before := len(podrules.NewlyTerminated(&v1.PodStatus{}, &v1.PodStatus{ContainerStatuses: status.ContainerStatuses}))
		ended := podrules.Terminate(pod, status, nil)
		after := len(podrules.NewlyTerminated(&v1.PodStatus{}, &v1.PodStatus{ContainerStatuses: ended.ContainerStatuses}))
		if got := after > before; got != (row.want && len(status.ContainerStatuses) > 0) {
			t.Errorf("%s: regular container ended: got %t, want %t", row.story, got, row.want)
		}
	}
}

func TestK3_CacheOrPodObjectMayShowThatThePodHasInitialized(t *testing.T) {
	stale := &v1.PodStatus{InitContainerStatuses: parseStatuses(t, "i:waiting"), ContainerStatuses: parseStatuses(t, "a:waiting")}
	fresh := &v1.PodStatus{InitContainerStatuses: parseStatuses(t, "i:exited(0)"), ContainerStatuses: parseStatuses(t, "a:running")}

	pod := parsePod(t, "init=i app=a")
	pod.Status = *stale
	check(t, "only the cache shows it", describeStates(podrules.Terminate(pod, fresh, nil).ContainerStatuses), "a:"+unseen)
	pod.Status = *fresh
	check(t, "only the pod object shows it", describeStates(podrules.Terminate(pod, stale, nil).ContainerStatuses), "a:"+unseen)
	pod.Status = *stale
	check(t, "neither", describeStates(podrules.Terminate(pod, stale, nil).ContainerStatuses), "a:waiting")
}

func TestK4_InitContainersEndUpToTheLastOneThatStarted(t *testing.T) {
	for _, row := range []termination{
		{story: "all wait: the first ends", init: "i:waiting j:waiting k:waiting", want: "i:" + unseen + " j:waiting k:waiting a:waiting"},
		{story: "second runs", init: "i:exited(0) j:running k:waiting", want: "i:exited(0) j:" + unseen + " k:waiting a:waiting"},
		{story: "second waits after an exit", init: "i:waiting j:waiting,last(1) k:waiting", want: "i:" + unseen + " j:" + unseen + " k:waiting a:waiting"},
		{story: "third has no state", init: "i:waiting j:waiting k:none", want: "i:" + unseen + " j:" + unseen + " k:" + unseen + " a:waiting"},
		{story: "none reported", init: "", want: "a:waiting"},
	} {
		row.pod, row.regular, row.phase, row.wantPhase = "init=i init=j init=k app=a", "a:waiting", v1.PodPending, v1.PodFailed
		row.run(t)
	}
}

func TestK5_EphemeralContainersAreLeftAlone(t *testing.T) {
	cached := &v1.PodStatus{EphemeralContainerStatuses: parseStatuses(t, "debug:running")}
	got := podrules.Terminate(parsePod(t, "app=a"), cached, observing(map[string]int32{"c://debug": 0}))
	check(t, "ephemeral", describeStates(got.EphemeralContainerStatuses), "debug:running")
}

func TestK6_ThePhaseBecomesTerminalExceptForStaticPods(t *testing.T) {
	for _, row := range []struct {
		pod         string
		phase, want v1.PodPhase
	}{
		{"app=a", v1.PodPending, v1.PodFailed},
		{"app=a", v1.PodRunning, v1.PodFailed},
		{"app=a", v1.PodSucceeded, v1.PodSucceeded},
		{"app=a", v1.PodFailed, v1.PodFailed},
		{"app=a", "", v1.PodFailed},
		{"app=a", "Dreaming", v1.PodFailed},
		{"source=file app=a", v1.PodRunning, v1.PodRunning},
		{"source=file app=a", v1.PodFailed, v1.PodFailed},
	} {
		got := podrules.Terminate(parsePod(t, row.pod), &v1.PodStatus{Phase: row.phase}, nil)
		check(t, row.pod+" in phase "+string(row.phase), string(got.Phase), string(row.want))
	}
}

func TestK7_TheGenerationIsLeft(t *testing.T) {
	pod := parsePod(t, flipPod)
	cached := runningStatus(t, "Ready=True")
	if got := podrules.Terminate(pod, cached, nil).ObservedGeneration; got != cached.ObservedGeneration {
		t.Errorf("got generation %d, want %d as cached", got, cached.ObservedGeneration)
	}
}

func TestTerminate_AnEndedPodIsNotReady(t *testing.T) {
	for _, row := range []struct {
		story, pod, conditions string
		phase                  v1.PodPhase
		want                   []string
	}{
		{"both were true", flipPod, "PodScheduled=True Ready=True ContainersReady=True", v1.PodRunning,
			[]string{"PodScheduled=True", "Ready=False (PodFailed) gen=2", "ContainersReady=False (PodFailed) gen=2"}},
		{"succeeded before", flipPod, "ContainersReady=True", v1.PodSucceeded,
			[]string{"ContainersReady=False (PodCompleted) gen=2", "Ready=False (PodCompleted) gen=2"}},
		{"said so already", flipPod, "Ready=False ContainersReady=False", v1.PodRunning, []string{"Ready=False", "ContainersReady=False"}},
		{"no word of readiness", flipPod, "PodScheduled=True", v1.PodRunning, []string{"PodScheduled=True"}},
		{"a static pod keeps its phase and its readiness", flipPod + " source=file", "Ready=True", v1.PodRunning, []string{"Ready=True"}},
	} {
		cached := runningStatus(t, row.conditions)
		cached.Phase = row.phase
		var got []string
		for _, c := range podrules.Terminate(parsePod(t, row.pod), cached, nil).Conditions {
			got = append(got, describe(c))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.story, got, row.want)
		}
	}
}

func TestK8_LastTerminationsAreKept(t *testing.T) {
	got := podrules.Terminate(parsePod(t, "init=i app=a"), &v1.PodStatus{
		InitContainerStatuses: parseStatuses(t, "i:running,last(4)"),
		ContainerStatuses:     parseStatuses(t, "a:waiting,last(5)"),
	}, nil)
	check(t, "init", describeState(got.InitContainerStatuses[0].LastTerminationState), "exited(4)")
	check(t, "regular", describeState(got.ContainerStatuses[0].LastTerminationState), "exited(5)")
}

func TestTerminate_SharesListsThatDoNotChange(t *testing.T) {
	cached := &v1.PodStatus{ContainerStatuses: parseStatuses(t, "a:exited(0)"), InitContainerStatuses: parseStatuses(t, "i:running")}
	got := podrules.Terminate(parsePod(t, "init=i app=a"), cached, nil)
	if &got.ContainerStatuses[0] != &cached.ContainerStatuses[0] {
		t.Error("regular statuses were copied although all had ended")
	}
	if &got.InitContainerStatuses[0] == &cached.InitContainerStatuses[0] {
		t.Error("init statuses changed and are shared with the cached status")
	}
}

func TestM2_NewlyTerminated(t *testing.T) {
	old := &v1.PodStatus{
		InitContainerStatuses:      parseStatuses(t, "i:running"),
		ContainerStatuses:          parseStatuses(t, "a:exited(0) b:running c:waiting"),
		EphemeralContainerStatuses: parseStatuses(t, "nil"),
	}
	next := &v1.PodStatus{
		InitContainerStatuses:      parseStatuses(t, "i:exited(0;Completed)"),
		ContainerStatuses:          parseStatuses(t, "a:exited(0) b:exited(1;Error) c:waiting"),
		EphemeralContainerStatuses: parseStatuses(t, "debug:exited(130;Error)"),
	}
	want := []podrules.TerminatedContainer{
		{Name: "i", Kind: podrules.KindInitContainer, ExitCode: 0, Reason: "Completed"},
		{Name: "b", Kind: podrules.KindContainer, ExitCode: 1, Reason: "Error"},
		{Name: "debug", Kind: podrules.KindEphemeralContainer, ExitCode: 130, Reason: "Error"},
	}
	if got := podrules.NewlyTerminated(old, next); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := podrules.NewlyTerminated(next, next); got != nil {
		t.Errorf("nothing new: got %v, want nil", got)
	}
	if n := testing.AllocsPerRun(10, func() { podrules.NewlyTerminated(next, next) }); n != 0 {
		t.Errorf("nothing new: got %v allocations, want 0", n)
	}
}
