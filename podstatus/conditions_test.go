package podstatus_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// allTypes are the condition types that the API names, and a foreign one.
var allTypes = []v1.PodConditionType{
	v1.ContainersReady, v1.PodInitialized, v1.PodReady, v1.PodScheduled, v1.DisruptionTarget,
	v1.PodReadyToStartContainers, v1.PodResizePending, v1.PodResizeInProgress,
	v1.AllContainersRestarting, "example.com/load-balancer",
}

// checkTypes fails unless is holds for exactly the wanted types.
func checkTypes(t *testing.T, word string, is func(v1.PodConditionType) bool, want ...v1.PodConditionType) {
	t.Helper()
	wanted := map[v1.PodConditionType]bool{}
	for _, c := range want {
		wanted[c] = true
	}
	for _, c := range allTypes {
		if got := is(c); got != wanted[c] {
			t.Errorf("%s is %s: got %t, want %t", c, word, got, wanted[c])
		}
	}
}

func TestC1_OwnedTypes(t *testing.T) {
	checkTypes(t, "owned", podstatus.IsOwned,
		v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodResizeInProgress,
		v1.PodResizePending, v1.PodReadyToStartContainers, v1.AllContainersRestarting)
}

func TestC2_DisruptionTargetIsTheOnlySharedType(t *testing.T) {
	checkTypes(t, "shared", podrules.IsShared, v1.DisruptionTarget)
}

func TestC3_SevenTypesHaveTheirTransitionTimeKeptByTheNode(t *testing.T) {
	checkTypes(t, "kept", podrules.HasTransitionTime,
		v1.ContainersReady, v1.PodReady, v1.PodInitialized, v1.PodReadyToStartContainers,
		v1.PodScheduled, v1.DisruptionTarget, v1.AllContainersRestarting)
}

func TestC4_TransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	earlier := metav1.NewTime(noon.Add(-time.Hour))
	old := &v1.PodStatus{Conditions: []v1.PodCondition{
		{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: earlier},
	}}
	now := noon.Add(700 * time.Millisecond)
	for _, row := range []struct {
		story string
		old   *v1.PodStatus
		c     v1.PodCondition
		want  time.Time
	}{
		{"same status", old, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}, earlier.Time},
		{"same status, other reason", old, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, Reason: "New"}, earlier.Time},
		{"other status", old, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse}, noon},
		{"other type", old, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue}, noon},
		{"no old status", nil, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}, noon},
		{"the reporter's time is discarded", old,
			v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: earlier}, noon},
	} {
		if got := podrules.TransitionTime(row.old, &row.c, now); !got.Time.Equal(row.want) {
			t.Errorf("%s: got %v, want %v", row.story, got, row.want)
		}
	}
}

func TestFindCondition_PointsIntoTheSlice(t *testing.T) {
	conditions := parseConditions("PodScheduled=True Ready=False Ready=True")
	if got := podstatus.FindCondition(conditions, v1.PodReady); got != &conditions[1] {
		t.Errorf("got %p, want the first Ready at %p", got, &conditions[1])
	}
	if got := podstatus.FindCondition(conditions, v1.PodInitialized); got != nil {
		t.Errorf("a type that is absent: got %v, want nil", got)
	}
}

// readiness is one row about ContainersReady.
type readiness struct {
	story, pod, statuses string
	phase                v1.PodPhase
	want                 string
}

func (row readiness) run(t *testing.T) {
	t.Helper()
	got := podstatus.ContainersReady(parsePod(t, row.pod), parseStatuses(t, row.statuses), row.phase)
	check(t, row.story, describe(got), row.want)
}

func TestC5_NoReportAtAllIsUnknown(t *testing.T) {
	readiness{"nil", "app=main", "nil", v1.PodRunning, "ContainersReady=False (UnknownContainerStatuses)"}.run(t)
	readiness{"nil, also in a failed pod", "app=main", "nil", v1.PodFailed, "ContainersReady=False (UnknownContainerStatuses)"}.run(t)
	readiness{"empty, containers missing", "app=main", "", v1.PodPending,
		`ContainersReady=False (ContainersNotReady) "containers with unknown status: [main]"`}.run(t)
	readiness{"empty, no containers wanted", "", "", v1.PodRunning, "ContainersReady=True"}.run(t)
}

func TestC6_EachRegularContainerAndSidecarMustBeReady(t *testing.T) {
	for _, row := range []readiness{
		{"ready", "app=main", "main:running,ready", v1.PodRunning, "ContainersReady=True"},
		{"unready", "app=main", "main:running", v1.PodRunning,
			`ContainersReady=False (ContainersNotReady) "containers with unready status: [main]"`},
		{"several, in spec order", "app=b app=a app=c", "a:running b:running c:running,ready", v1.PodRunning,
			`ContainersReady=False (ContainersNotReady) "containers with unready status: [b a]"`},
		{"unknown and unready", "app=a app=b app=c", "b:running", v1.PodPending,
			`ContainersReady=False (ContainersNotReady) "containers with unknown status: [a c], containers with unready status: [b]"`},
		{"sidecar unready comes first", "sidecar=proxy app=main", "proxy:running main:running", v1.PodRunning,
			`ContainersReady=False (ContainersNotReady) "containers with unready status: [proxy main]"`},
		{"sidecar unknown", "sidecar=proxy app=main", "main:running,ready", v1.PodRunning,
			`ContainersReady=False (ContainersNotReady) "containers with unknown status: [proxy]"`},
		{"sidecar ready", "sidecar=proxy app=main", "proxy:running,ready main:running,ready", v1.PodRunning, "ContainersReady=True"},
		{"other init containers do not count", "init=setup app=main", "main:running,ready", v1.PodRunning, "ContainersReady=True"},
	} {
		row.run(t)
	}
}

func TestC7_TerminalPhasesAreNeverReady(t *testing.T) {
	for _, row := range []readiness{
		{"succeeded", "app=main", "main:exited(0)", v1.PodSucceeded, "ContainersReady=False (PodCompleted)"},
		{"succeeded, whatever the container says", "app=main", "main:running,ready", v1.PodSucceeded, "ContainersReady=False (PodCompleted)"},
		{"succeeded with a container unknown", "app=main app=side", "main:exited(0)", v1.PodSucceeded,
			`ContainersReady=False (ContainersNotReady) "containers with unknown status: [side], containers with unready status: [main]"`},
		{"failed", "app=main", "main:running,ready", v1.PodFailed, "ContainersReady=False (PodFailed)"},
		{"failed with a container unknown", "app=main", "", v1.PodFailed, "ContainersReady=False (PodFailed)"},
	} {
		row.run(t)
	}
	pod := parsePod(t, "gen=4 app=main")
	check(t, "Ready of a failed pod", describe(podrules.TerminalCondition(pod, v1.PodReady, v1.PodFailed)), "Ready=False (PodFailed) gen=4")
	check(t, "ContainersReady of a completed pod", describe(podrules.TerminalCondition(pod, v1.ContainersReady, v1.PodSucceeded)),
		"ContainersReady=False (PodCompleted) gen=4")
	check(t, "a phase that is not terminal has no reason", describe(podrules.TerminalCondition(pod, v1.PodReady, v1.PodRunning)), "Ready=False gen=4")
}

func TestC8_ReadyCopiesContainersReadyUnlessTrue(t *testing.T) {
	for _, row := range []readiness{
		{"unready", "app=main", "main:running", v1.PodRunning,
			`Ready=False (ContainersNotReady) "containers with unready status: [main]"`},
		{"nil", "app=main", "nil", v1.PodPending, "Ready=False (UnknownContainerStatuses)"},
		{"completed", "app=main", "main:exited(0)", v1.PodSucceeded, "Ready=False (PodCompleted)"},
		{"an unmet gate adds nothing", "app=main gate=x.io/lb", "main:running", v1.PodRunning,
			`Ready=False (ContainersNotReady) "containers with unready status: [main]"`},
		{"ready", "app=main", "main:running,ready", v1.PodRunning, "Ready=True"},
	} {
		got := podstatus.Ready(parsePod(t, row.pod), nil, parseStatuses(t, row.statuses), row.phase)
		check(t, row.story, describe(got), row.want)
	}
}

func TestC9_EveryReadinessGateMustBeTrue(t *testing.T) {
	for _, row := range []struct{ story, pod, conditions, want string }{
		{"met", "app=main gate=x.io/lb", "x.io/lb=True", "Ready=True"},
		{"absent", "app=main gate=x.io/lb", "",
			`Ready=False (ReadinessGatesNotReady) "corresponding condition of pod readiness gate \"x.io/lb\" does not exist."`},
		{"false", "app=main gate=x.io/lb", "x.io/lb=False",
			`Ready=False (ReadinessGatesNotReady) "the status of pod readiness gate \"x.io/lb\" is not \"True\", but False"`},
		{"one of each", "app=main gate=a gate=b gate=c", "b=Unknown c=True",
			`Ready=False (ReadinessGatesNotReady) "corresponding condition of pod readiness gate \"a\" does not exist., ` +
				`the status of pod readiness gate \"b\" is not \"True\", but Unknown"`},
	} {
		got := podstatus.Ready(parsePod(t, row.pod), parseConditions(row.conditions), parseStatuses(t, "main:running,ready"), v1.PodRunning)
		check(t, row.story, describe(got), row.want)
	}
}

// initialization is one row about Initialized.
type initialization struct {
	story, pod, old, statuses string
	phase                     v1.PodPhase
	want                      string
}

func (row initialization) run(t *testing.T) {
	t.Helper()
	var old *v1.PodStatus
	if row.old != "" {
		old = &v1.PodStatus{Conditions: parseConditions(row.old)}
	}
	got := podstatus.Initialized(parsePod(t, row.pod), old, parseStatuses(t, row.statuses), row.phase)
	check(t, row.story, describe(got), row.want)
}

func TestC10_InitContainersMustBeReadyAndSidecarsStarted(t *testing.T) {
	for _, row := range []initialization{
		{"nil, init containers", "init=setup app=main", "", "nil", v1.PodPending, "Initialized=False (UnknownContainerStatuses)"},
		{"nil, none", "app=main", "", "nil", v1.PodPending, "Initialized=True"},
		{"init done", "init=setup app=main", "", "setup:exited(0),ready", v1.PodPending, "Initialized=True"},
		{"init runs", "init=setup app=main", "", "setup:running", v1.PodPending,
			`Initialized=False (ContainersNotInitialized) "containers with incomplete status: [setup]"`},
		{"sidecar started", "sidecar=proxy app=main", "", "proxy:running,started", v1.PodPending, "Initialized=True"},
		{"sidecar ready but not started", "sidecar=proxy app=main", "", "proxy:running,ready", v1.PodPending,
			`Initialized=False (ContainersNotInitialized) "containers with incomplete status: [proxy]"`},
		{"sidecar says not started", "sidecar=proxy app=main", "", "proxy:running,notstarted", v1.PodPending,
			`Initialized=False (ContainersNotInitialized) "containers with incomplete status: [proxy]"`},
	} {
		row.run(t)
	}
}

func TestC11_InitializedFormsByPhaseAndByRegularContainers(t *testing.T) {
	for _, row := range []initialization{
		{"succeeded", "init=setup app=main", "", "setup:waiting main:waiting", v1.PodSucceeded, "Initialized=True (PodCompleted)"},
		{"succeeded, init unknown", "init=setup app=main", "", "main:waiting", v1.PodSucceeded,
			`Initialized=False (ContainersNotInitialized) "containers with unknown status: [setup]"`},
		{"regular runs", "init=setup app=main", "", "setup:waiting main:running", v1.PodRunning, "Initialized=True"},
		{"regular ended", "init=setup app=main", "", "main:exited(1)", v1.PodFailed, "Initialized=True"},
		{"a container that the spec does not name runs", "init=setup app=main", "", "setup:waiting ghost:running", v1.PodPending,
			`Initialized=False (ContainersNotInitialized) "containers with incomplete status: [setup]"`},
		{"unknown and incomplete", "init=a init=b app=main", "", "b:running", v1.PodPending,
			`Initialized=False (ContainersNotInitialized) "containers with unknown status: [a], containers with incomplete status: [b]"`},
	} {
		row.run(t)
	}
}

func TestC12_OnceInitializedStaysInitialized(t *testing.T) {
	initialization{"was true", "init=setup app=main", "Initialized=True", "setup:waiting", v1.PodPending, "Initialized=True"}.run(t)
	initialization{"was false", "init=setup app=main", "Initialized=False", "setup:waiting", v1.PodPending,
		`Initialized=False (ContainersNotInitialized) "containers with incomplete status: [setup]"`}.run(t)
	initialization{"was not said", "init=setup app=main", "Ready=True", "setup:waiting", v1.PodPending,
		`Initialized=False (ContainersNotInitialized) "containers with incomplete status: [setup]"`}.run(t)
	initialization{"nothing reported comes first", "init=setup app=main", "Initialized=True", "nil", v1.PodPending,
		"Initialized=False (UnknownContainerStatuses)"}.run(t)
}

func TestC13_ReadyToStartContainersFollowsTheSandbox(t *testing.T) {
	pod := parsePod(t, "gen=2 app=main")
	check(t, "sandbox in place", describe(podrules.ReadyToStartContainers(pod, false)), "PodReadyToStartContainers=True gen=2")
	check(t, "new sandbox needed", describe(podrules.ReadyToStartContainers(pod, true)), "PodReadyToStartContainers=False gen=2")
}

func TestC14_AllContainersRestartingFromTriggerUntilCleanedUp(t *testing.T) {
	const (
		pod  = "gen=2 restart=Never init=setup/Never/In(7)->RestartAllContainers app=main/Never/In(42)->RestartAllContainers app=side"
		no   = "AllContainersRestarting=False"
		yes  = `AllContainersRestarting=True (RestartAllContainersStarted) "container exited with restart policy rule"`
		that = "AllContainersRestarting=True"
	)
	for _, row := range []struct {
		story, oldConditions, oldStatuses, held string
		phase                                   v1.PodPhase
		want                                    string
	}{
		{"nothing happened", "", "", "main:running side:running", v1.PodRunning, no},
		{"trigger", "", "", "main:exited(42) side:running", v1.PodRunning, yes},
		{"init trigger", "", "", "setup:exited(7)", v1.PodPending, yes},
		{"another exit", "", "", "main:exited(1) side:running", v1.PodRunning, no},
		{"a container without the rule", "", "", "main:running side:exited(42)", v1.PodRunning, no},
		{"the trigger was reported, the runtime holds another exit", "", "main:exited(42)", "main:exited(137)", v1.PodRunning, yes},
		{"the trigger was reported, the container runs again", "", "main:exited(42)", "main:running", v1.PodRunning, no},
		{"going on", that, "", "side:exited(137)", v1.PodRunning, yes},
		{"cleaned up", that, "", "", v1.PodRunning, no},
		{"only a stranger's container is left", that, "", "ghost:running", v1.PodRunning, no},
		{"was over before", "AllContainersRestarting=False", "", "side:running", v1.PodRunning, no},
		{"succeeded", that, "", "main:exited(42)", v1.PodSucceeded, "AllContainersRestarting=False (PodCompleted)"},
		{"failed", that, "", "main:exited(42)", v1.PodFailed, "AllContainersRestarting=False (PodFailed)"},
	} {
		old := &v1.PodStatus{Conditions: parseConditions(row.oldConditions), ContainerStatuses: parseStatuses(t, row.oldStatuses)}
		got := podrules.AllContainersRestarting(parsePod(t, pod), old, parseStatuses(t, row.held), row.phase)
		check(t, row.story, describe(got), row.want)
	}
	got := podrules.AllContainersRestarting(parsePod(t, pod), nil, parseStatuses(t, "main:exited(42)"), v1.PodRunning)
	check(t, "nothing was reported before", describe(got), yes)
}

func TestC15_GeneratedConditionsCarryThePodsGeneration(t *testing.T) {
	pod := parsePod(t, "gen=9 init=setup app=main gate=x.io/lb")
	ready := parseStatuses(t, "setup:exited(0),ready main:running,ready")
	unready := parseStatuses(t, "setup:running main:waiting")
	for _, c := range []v1.PodCondition{
		podstatus.ContainersReady(pod, ready, v1.PodRunning),
		podstatus.ContainersReady(pod, unready, v1.PodRunning),
		podstatus.ContainersReady(pod, nil, v1.PodRunning),
		podstatus.ContainersReady(pod, ready, v1.PodFailed),
		podstatus.Ready(pod, parseConditions("x.io/lb=True"), ready, v1.PodRunning),
		podstatus.Ready(pod, nil, ready, v1.PodRunning),
		podstatus.Ready(pod, nil, unready, v1.PodRunning),
		podstatus.Initialized(pod, nil, ready, v1.PodRunning),
		podstatus.Initialized(pod, nil, unready, v1.PodRunning),
		podstatus.Initialized(pod, nil, nil, v1.PodRunning),
		podstatus.Initialized(pod, nil, ready, v1.PodSucceeded),
		podrules.ReadyToStartContainers(pod, true),
	} {
		if c.ObservedGeneration != 9 {
			t.Errorf("%s: got generation %d, want 9", describe(c), c.ObservedGeneration)
		}
	}
}

func TestC16_ReadinessReconcileCountsSidecars(t *testing.T) {
	const ready = "proxy:running,ready,started"
	for _, row := range []struct {
		story, pod, conditions, init, statuses string
		want                                   bool
	}{
		{"no gates", "app=main", "Ready=False", "nil", "main:running,ready", false},
		{"settled", "app=main gate=x", "Ready=True x=True", "nil", "main:running,ready", false},
		{"gate opened", "app=main gate=x", "Ready=False x=True", "nil", "main:running,ready", true},
		{"gate closed", "app=main gate=x", "Ready=True x=False", "nil", "main:running,ready", true},
		{"no Ready condition yet", "app=main gate=x", "x=True", "nil", "main:running,ready", false},
		{"settled with a sidecar", "sidecar=proxy app=main gate=x", "Ready=True x=True", ready, "main:running,ready", false},
		{"sidecar lost its readiness", "sidecar=proxy app=main gate=x", "Ready=True x=True", "proxy:running", "main:running,ready", true},
		{"same status, other message", "app=main gate=x", "Ready=False x=False", "nil", "main:running,ready", true},
	} {
		status := &v1.PodStatus{
			Phase:                 v1.PodRunning,
			Conditions:            parseConditions(row.conditions),
			InitContainerStatuses: parseStatuses(t, row.init),
			ContainerStatuses:     parseStatuses(t, row.statuses),
		}
		if got := podrules.NeedsReadinessReconcile(parsePod(t, row.pod), status); got != row.want {
			t.Errorf("%s: got %t, want %t", row.story, got, row.want)
		}
	}
}
