package podstatus_test

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// transition is one row: may incoming follow old? An empty want means that it may.
type transition struct {
	story         string
	pod           string
	old, incoming string
	oldInit, init string
	want          string
}

func (row transition) run(t *testing.T) {
	t.Helper()
	pod := parsePod(t, row.pod)
	old := &v1.PodStatus{ContainerStatuses: parseStatuses(t, row.old), InitContainerStatuses: parseStatuses(t, row.oldInit)}
	incoming := &v1.PodStatus{ContainerStatuses: parseStatuses(t, row.incoming), InitContainerStatuses: parseStatuses(t, row.init)}
	got := ""
	if err := podrules.CheckTransitions(pod, old, incoming); err != nil {
		if _, ok := errors.AsType[*podstatus.TransitionError](err); !ok {
			t.Fatalf("%s: error %v is a %T, want *TransitionError", row.story, err, err)
		}
		got = err.Error()
	}
	check(t, row.story, got, row.want)
}

const (
	mainMayNotRun = `container "main" may not go from terminated to running: no restart policy or rule lets it run again`
	initMayNotRun = `init container "setup" may not go from terminated to running: no restart policy or rule lets it run again`
)

func TestT1_PodsThatAlwaysRestartAreNotChecked(t *testing.T) {
	transition{story: "Always", pod: "restart=Always app=main", old: "main:exited(0)", incoming: "main:running"}.run(t)
	transition{story: "Always beats a container's own Never", pod: "restart=Always app=main/Never",
		old: "main:exited(0)", incoming: "main:running"}.run(t)
}

func TestT2_PodsThatMayRestartAllAreNotChecked(t *testing.T) {
	for _, pod := range []string{
		"restart=Never app=main app=trigger/Never/In(42)->RestartAllContainers",
		"restart=Never app=main init=trigger/Never/In(42)->RestartAllContainers",
	} {
		transition{story: pod, pod: pod, old: "main:exited(0)", incoming: "main:running"}.run(t)
	}
	transition{story: "a rule that restarts only its own container frees no other",
		pod: "restart=Never app=main app=other/Never/In(42)->Restart",
		old: "main:exited(0)", incoming: "main:running", want: mainMayNotRun}.run(t)
}

func TestT3_TerminatedMayNotRunAgain(t *testing.T) {
	for _, row := range []transition{
		{story: "to running", old: "main:exited(0)", incoming: "main:running", want: mainMayNotRun},
		{story: "to waiting", old: "main:exited(1)", incoming: "main:waiting",
			want: `container "main" may not go from terminated to waiting: no restart policy or rule lets it run again`},
		{story: "to no state", old: "main:exited(1)", incoming: "main:none",
			want: `container "main" may not go from terminated to unknown: no restart policy or rule lets it run again`},
		{story: "stays terminated", old: "main:exited(1)", incoming: "main:exited(1)"},
		{story: "another exit code", old: "main:exited(1)", incoming: "main:exited(0)"},
		{story: "running to running", old: "main:running", incoming: "main:running"},
		{story: "running to waiting", old: "main:running", incoming: "main:waiting"},
		{story: "matched by name, not place", old: "side:running main:exited(0)", incoming: "main:running side:running", want: mainMayNotRun},
		{story: "a container the spec does not know", old: "main:running ghost:exited(0)", incoming: "main:running ghost:running",
			want: `container "ghost" may not go from terminated to running: no restart policy or rule lets it run again`},
	} {
		row.pod = "restart=Never app=main app=side"
		row.run(t)
	}
}

func TestT4_OnFailureRestartsFailures(t *testing.T) {
	transition{story: "failed", pod: "restart=OnFailure app=main", old: "main:exited(1)", incoming: "main:running"}.run(t)
	transition{story: "succeeded", pod: "restart=OnFailure app=main", old: "main:exited(0)", incoming: "main:running", want: mainMayNotRun}.run(t)
}

func TestT5_ContainerPolicyAndRulesMayRestart(t *testing.T) {
	for _, row := range []transition{
		{story: "own Always", pod: "restart=Never app=main/Always", old: "main:exited(0)"},
		{story: "own OnFailure, failed", pod: "restart=Never app=main/OnFailure", old: "main:exited(1)"},
		{story: "own OnFailure, succeeded", pod: "restart=Never app=main/OnFailure", old: "main:exited(0)", want: mainMayNotRun},
		{story: "own Never", pod: "restart=Never app=main/Never", old: "main:exited(1)", want: mainMayNotRun},
		{story: "rule In matches", pod: "restart=Never app=main/Never/In(41,42)->Restart", old: "main:exited(42)"},
		{story: "rule In does not match", pod: "restart=Never app=main/Never/In(41,42)->Restart", old: "main:exited(1)", want: mainMayNotRun},
		{story: "rule NotIn matches", pod: "restart=Never app=main/Never/NotIn(0)->Restart", old: "main:exited(1)"},
		{story: "rule NotIn does not match", pod: "restart=Never app=main/Never/NotIn(0)->Restart", old: "main:exited(0)", want: mainMayNotRun},
		{story: "rule without exit codes says nothing", pod: "restart=Never app=main/Never/()->Restart", old: "main:exited(1)", want: mainMayNotRun},
		{story: "unknown operator says nothing", pod: "restart=Never app=main/Never/Near(1)->Restart", old: "main:exited(1)", want: mainMayNotRun},
		{story: "unknown action falls back to the policy", pod: "restart=Never app=main/OnFailure/In(1)->Dance", old: "main:exited(1)"},
		{story: "rule without a policy of its own is not in force", pod: "restart=Never app=main/In(1)->Restart", old: "main:exited(1)", want: mainMayNotRun},
		{story: "an unknown policy falls back to the pod's", pod: "restart=Never app=main/Sometimes", old: "main:exited(1)", want: mainMayNotRun},
		{story: "a pod without a policy restarts", pod: "app=main", old: "main:exited(0)"},
		{story: "a pod without a policy, container the spec does not know", pod: "app=other", old: "main:exited(0)", want: mainMayNotRun},
	} {
		row.incoming = "main:running"
		row.run(t)
	}
}

func TestT6_InitContainersObeyTooButSidecarsAreFree(t *testing.T) {
	for _, row := range []transition{
		{story: "init, Never", pod: "restart=Never init=setup app=main", oldInit: "setup:exited(0)", init: "setup:running", want: initMayNotRun},
		{story: "init, OnFailure, failed", pod: "restart=OnFailure init=setup app=main", oldInit: "setup:exited(1)", init: "setup:running"},
		{story: "init, OnFailure, succeeded", pod: "restart=OnFailure init=setup app=main", oldInit: "setup:exited(0)", init: "setup:running", want: initMayNotRun},
		{story: "init, own rule", pod: "restart=Never init=setup/Never/In(3)->Restart app=main", oldInit: "setup:exited(3)", init: "setup:running"},
		{story: "sidecar", pod: "restart=Never sidecar=proxy app=main", oldInit: "proxy:exited(0)", init: "proxy:running"},
	} {
		row.run(t)
	}
}

func TestT7_InitMismatchIsReportedButMatchedByName(t *testing.T) {
	const pod = "restart=Never init=setup sidecar=proxy app=main"
	for _, row := range []struct{ story, old, want string }{
		{"in order", "setup:exited(0) proxy:running", ""},
		{"not all reported yet", "setup:exited(0)", ""},
		{"none", "", ""},
		{"swapped", "proxy:running setup:exited(0)", `init container status 0 is "proxy", but the spec has "setup" there`},
		{"one too many", "setup:exited(0) proxy:running ghost:exited(0)",
			`init container status 2 is "ghost", but the spec has only 2 init containers`},
	} {
		got := ""
		if err := podrules.InitMismatch(parsePod(t, pod), &v1.PodStatus{InitContainerStatuses: parseStatuses(t, row.old)}); err != nil {
			got = err.Error()
		}
		check(t, row.story, got, row.want)
	}
	transition{story: "a mismatch does not abort the update that ends the pod", pod: pod,
		oldInit: "proxy:running setup:exited(0)", init: "setup:exited(0) proxy:exited(137)",
		old: "main:running", incoming: "main:exited(137)"}.run(t)
	transition{story: "a swapped sidecar is still free", pod: pod,
		oldInit: "proxy:exited(0) setup:exited(0)", init: "proxy:running setup:exited(0)"}.run(t)
	transition{story: "a swapped init container is still bound", pod: pod,
		oldInit: "proxy:running setup:exited(0)", init: "proxy:running setup:running", want: initMayNotRun}.run(t)
}

func TestT8_DisappearedAndEphemeralContainersAreNotChecked(t *testing.T) {
	transition{story: "disappeared", pod: "restart=Never app=main", old: "main:exited(0)", incoming: ""}.run(t)
	pod := parsePod(t, "restart=Never app=main")
	old := &v1.PodStatus{EphemeralContainerStatuses: parseStatuses(t, "debug:exited(0)")}
	incoming := &v1.PodStatus{EphemeralContainerStatuses: parseStatuses(t, "debug:running")}
	if err := podrules.CheckTransitions(pod, old, incoming); err != nil {
		t.Errorf("an ephemeral container that runs again: got %v, want no error", err)
	}
}

func TestT9_PodOnFailureComesBeforeContainerNever(t *testing.T) {
	transition{story: "failed", pod: "restart=OnFailure app=main/Never", old: "main:exited(1)", incoming: "main:running"}.run(t)
	transition{story: "succeeded", pod: "restart=OnFailure app=main/Never", old: "main:exited(0)", incoming: "main:running", want: mainMayNotRun}.run(t)
}

func TestT10_PhasesAreNotChecked(t *testing.T) {
	pod := parsePod(t, "restart=Never app=main")
	if err := podrules.CheckTransitions(pod, &v1.PodStatus{Phase: v1.PodFailed}, &v1.PodStatus{Phase: v1.PodRunning}); err != nil {
		t.Errorf("Failed to Running without containers: got %v, want no error", err)
	}
}

func TestTransitionError_NamesContainerAndStates(t *testing.T) {
	pod := parsePod(t, "restart=Never init=setup app=main")
	err := podrules.CheckTransitions(pod,
		&v1.PodStatus{InitContainerStatuses: parseStatuses(t, "setup:exited(0)")},
		&v1.PodStatus{InitContainerStatuses: parseStatuses(t, "setup:waiting")})
	got, ok := errors.AsType[*podstatus.TransitionError](err)
	if !ok {
		t.Fatalf("got %v, want a *TransitionError", err)
	}
	want := podstatus.TransitionError{Container: "setup", Init: true, From: "terminated", To: "waiting"}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

func TestCheckTransitions_AllocatesNothingWhenAllIsWell(t *testing.T) {
	pod := parsePod(t, "restart=Never init=setup app=main app=side")
	status := &v1.PodStatus{
		InitContainerStatuses: parseStatuses(t, "setup:exited(0)"),
		ContainerStatuses:     parseStatuses(t, "main:exited(0) side:running"),
	}
	if n := testing.AllocsPerRun(10, func() { _ = podrules.CheckTransitions(pod, status, status) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
