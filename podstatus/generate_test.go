package podstatus_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

func running(container, id string, number int) podstatus.Attempt {
	return podstatus.Attempt{Container: container, ID: id, Number: number, State: podstatus.AttemptRunning, StartedAt: noon}
}

func exited(container, id string, number int, code int32) podstatus.Attempt {
	return podstatus.Attempt{Container: container, ID: id, Number: number, State: podstatus.AttemptExited, ExitCode: code, FinishedAt: noon}
}

// ofContainers writes each container status as NAME:STATE with what else matters of it.
func ofContainers(lists ...[]v1.ContainerStatus) string {
	var words []string
	for _, list := range lists {
		for _, s := range list {
			word := s.Name + ":" + describeState(s.State)
			if s.Ready {
				word += ",ready"
			}
			if podstatus.IsStarted(&s) {
				word += ",started"
			}
			if s.RestartCount > 0 {
				word += ",restarts=" + string(rune('0'+s.RestartCount))
			}
			if s.LastTerminationState.Terminated != nil {
				word += ",last=" + describeState(s.LastTerminationState)
			}
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

func TestGenerateContainerStatuses(t *testing.T) {
	probed := parsePod(t, "app=a")
	probed.Spec.Containers[0].ReadinessProbe = &v1.Probe{}
	for _, c := range []struct {
		story    string
		pod      *v1.Pod
		facts    podstatus.Facts
		previous string // container statuses
		want     string
		phase    v1.PodPhase
	}{
		{"nothing is known", parsePod(t, "app=a app=b"), podstatus.Facts{}, "nil",
			"a:waiting(ContainerCreating) b:waiting(ContainerCreating)", v1.PodPending},
		{"nothing is known, with init containers", parsePod(t, "init=i sidecar=s app=a"), podstatus.Facts{}, "nil",
			"i:waiting(PodInitializing) s:waiting(PodInitializing) a:waiting(PodInitializing)", v1.PodPending},
		{"running", parsePod(t, "app=a"), podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}}, "nil",
			"a:running,ready,started", v1.PodRunning},
		{"a readiness probe that has not passed", probed, podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}}, "nil",
			"a:running,started", v1.PodRunning},
		{"a readiness probe that has passed", probed,
			podstatus.Facts{Attempts: []podstatus.Attempt{{Container: "a", ID: "1", State: podstatus.AttemptRunning, Ready: new(true)}}}, "nil",
			"a:running,ready,started", v1.PodRunning},
		{"it stays ready under its ID", probed, podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}}, "a:running,ready,id=1",
			"a:running,ready,started", v1.PodRunning},
		{"another container is not ready yet", probed, podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "2", 1)}}, "a:running,ready,id=1",
			"a:running,started,restarts=1", v1.PodRunning},
		{"the sidecar of an initialized pod", parsePod(t, "init=i sidecar=s app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{exited("i", "1", 0, 0), running("s", "2", 0), running("a", "3", 0)}}, "nil",
			"i:exited(0;Completed),ready s:running,ready,started a:running,ready,started", v1.PodRunning},
		{"the newest attempt counts, in any order", parsePod(t, "app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{exited("a", "1", 0, 3), running("a", "3", 2), exited("a", "2", 1, 4)}}, "nil",
			"a:running,ready,started,restarts=2,last=exited(4;Error)", v1.PodRunning},
		{"the runtime has forgotten the one before", parsePod(t, "app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "2", 1)}}, "a:exited(1),id=1",
			"a:running,ready,started,restarts=1,last=exited(1)", v1.PodRunning},
		{"a last termination that was reported is kept", parsePod(t, "app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "2", 1)}}, "a:running,id=2,last(1)",
			"a:running,ready,started,restarts=1,last=exited(1)", v1.PodRunning},
		{"in a back-off", parsePod(t, "restart=Always app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{exited("a", "1", 0, 1)}, Waiting: map[string]v1.ContainerStateWaiting{"a": {Reason: "CrashLoopBackOff"}}}, "nil",
			"a:waiting(CrashLoopBackOff),last=exited(1;Error)", v1.PodRunning},
		{"one that runs no more has nothing to wait for", parsePod(t, "restart=Never app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{exited("a", "1", 0, 1)}, Waiting: map[string]v1.ContainerStateWaiting{"a": {Reason: "CrashLoopBackOff"}}}, "nil",
			"a:exited(1;Error)", v1.PodFailed},
		{"one that the node has stopped runs again", parsePod(t, "restart=OnFailure app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{exited("a", "1", 0, 0)}, Restarting: map[string]bool{"1": true}}, "nil",
			"a:waiting(ContainerCreating),last=exited(0;Completed)", v1.PodRunning},
		{"one that is lost", parsePod(t, "app=a"), podstatus.Facts{}, "a:running,id=1",
			"a:waiting(ContainerCreating),restarts=1,last=exited(137;ContainerStatusUnknown)", v1.PodRunning},
		{"an end that the runtime has forgotten", parsePod(t, "restart=Never app=a"), podstatus.Facts{}, "a:exited(0),id=1",
			"a:exited(0)", v1.PodSucceeded},
		{"an init container without a record has succeeded if the work has begun", parsePod(t, "init=x sidecar=s app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}}, "nil",
			"x:exited(0;Completed) s:waiting(PodInitializing) a:running,ready,started", v1.PodPending},
		{"from an earlier sandbox it proves nothing", parsePod(t, "init=x app=a"),
			podstatus.Facts{Attempts: []podstatus.Attempt{{Container: "a", ID: "1", State: podstatus.AttemptExited, ExitCode: 137, EarlierSandbox: true}}}, "nil",
			"x:waiting(PodInitializing) a:exited(137;Error)", v1.PodPending},
	} {
		previous := v1.PodStatus{ContainerStatuses: parseStatuses(t, c.previous)}
		got := podstatus.Generate(c.pod, c.facts, previous, noon)
		check(t, c.story, ofContainers(got.InitContainerStatuses, got.ContainerStatuses), c.want)
		check(t, c.story+": phase", string(got.Phase), string(c.phase))
	}
}

func TestGenerateEphemeralContainers(t *testing.T) {
	pod := parsePod(t, "app=a")
	for _, name := range []string{"debug", "refused", "waits"} {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers,
			v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: name}})
	}
	got := podstatus.Generate(pod, podstatus.Facts{
		Attempts: []podstatus.Attempt{running("debug", "1", 0)},
		Waiting:  map[string]v1.ContainerStateWaiting{"refused": {Reason: "CreateContainerConfigError"}},
	}, v1.PodStatus{}, noon)
	check(t, "ephemeral", ofContainers(got.EphemeralContainerStatuses),
		"debug:running,ready,started refused:waiting(CreateContainerConfigError) waits:waiting(ContainerCreating)")
}

// TestGenerateNeedsNoFacts shows what an agent that knows nothing yet reports.
func TestGenerateNeedsNoFacts(t *testing.T) {
	pod := parsePod(t, "gen=3 app=a")
	got := podstatus.Generate(pod, podstatus.Facts{}, v1.PodStatus{}, noon)
	var conditions []string
	for _, c := range got.Conditions {
		conditions = append(conditions, describe(c))
		if !c.LastTransitionTime.Time.Equal(noon) {
			t.Errorf("%s: got transition time %s, want now", c.Type, c.LastTransitionTime)
		}
	}
	check(t, "conditions", strings.Join(conditions, "\n"), strings.Join([]string{
		`PodReadyToStartContainers=False gen=3`,
		`Initialized=True gen=3`,
		`Ready=False (ContainersNotReady) "containers with unready status: [a]" gen=3`,
		`ContainersReady=False (ContainersNotReady) "containers with unready status: [a]" gen=3`,
		`PodScheduled=True gen=3`,
	}, "\n"))
	if got.QOSClass != v1.PodQOSBestEffort || got.ObservedGeneration != 3 || !got.StartTime.Time.Equal(noon) {
		t.Errorf("got QoS %q, generation %d, start %s; want BestEffort, 3, now", got.QOSClass, got.ObservedGeneration, got.StartTime)
	}
}

func TestGenerateAddresses(t *testing.T) {
	pod := parsePod(t, "app=a")
	facts := podstatus.Facts{HostIPs: []string{"192.0.2.1", "2001:db8::1"}, IPs: []string{"10.0.0.7"}}
	got := podstatus.Generate(pod, facts, v1.PodStatus{}, noon)
	if got.PodIP != "10.0.0.7" || len(got.PodIPs) != 1 || got.HostIP != "192.0.2.1" || len(got.HostIPs) != 2 {
		t.Errorf("got pod %s %v, host %s %v", got.PodIP, got.PodIPs, got.HostIP, got.HostIPs)
	}
	pod.Spec.HostNetwork, facts.IPs = true, nil
	got = podstatus.Generate(pod, facts, v1.PodStatus{}, noon)
	if got.PodIP != "192.0.2.1" || len(got.PodIPs) != 2 {
		t.Errorf("in the network of the host: got pod %s %v, want those of the node", got.PodIP, got.PodIPs)
	}
}

// TestGenerateShowsTheProberAWholeStatus: probes are sent to the address of the pod.
func TestGenerateShowsTheProberAWholeStatus(t *testing.T) {
	var shown v1.PodStatus
	podstatus.Generate(parsePod(t, "app=a"), podstatus.Facts{
		Attempts: []podstatus.Attempt{running("a", "1", 0)}, IPs: []string{"10.0.0.7"},
		Probe: func(status *v1.PodStatus) { shown = *status.DeepCopy() },
	}, v1.PodStatus{}, noon)
	if shown.PodIP != "10.0.0.7" || shown.Phase != v1.PodRunning || shown.ContainerStatuses[0].Started != nil {
		t.Errorf("got address %q, phase %s, started %v; want 10.0.0.7, Running, none", shown.PodIP, shown.Phase, shown.ContainerStatuses[0].Started)
	}
}

func TestGenerateMounts(t *testing.T) {
	pod := parsePod(t, "app=a")
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "conf", MountPath: "/conf", ReadOnly: true}}
	got := podstatus.Generate(pod, podstatus.Facts{}, v1.PodStatus{}, noon).ContainerStatuses[0].VolumeMounts
	if len(got) != 2 || got[0].MountPath != "/data" || got[0].RecursiveReadOnly != nil ||
		got[1].RecursiveReadOnly == nil || *got[1].RecursiveReadOnly != v1.RecursiveReadOnlyDisabled {
		t.Errorf("got %+v, want both, and only the read-only one with a mode", got)
	}
}

func TestGenerateKeepsDisruptionAndForeignConditions(t *testing.T) {
	pod := parsePod(t, "app=a gate=example.com/lb")
	pod.Status.Conditions = parseConditions("example.com/lb=True Ready=True")
	got := podstatus.Generate(pod, podstatus.Facts{
		Attempts:   []podstatus.Attempt{running("a", "1", 0)},
		Conditions: parseConditions("PodResizePending=True"),
	}, v1.PodStatus{Conditions: parseConditions("DisruptionTarget=True")}, noon)
	var types []string
	for _, c := range got.Conditions {
		types = append(types, string(c.Type)+"="+string(c.Status))
	}
	check(t, "conditions", strings.Join(types, " "), "example.com/lb=True PodResizePending=True DisruptionTarget=True "+
		"PodReadyToStartContainers=False Initialized=True Ready=True ContainersReady=True PodScheduled=True")
}

func TestGenerateFailure(t *testing.T) {
	target := &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet"}
	eviction := &podstatus.Failure{Reason: "Evicted", Message: "The node was low on resource: memory.", Condition: target}
	start := &metav1.Time{Time: noon.Add(-time.Minute)}
	for _, c := range []struct {
		story    string
		pod      string
		deadline int64
		facts    podstatus.Facts
		previous v1.PodStatus
		want     string
	}{
		{"an eviction", "restart=Always app=a", 0, podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}, Failure: eviction}, v1.PodStatus{}, "Failed Evicted DisruptionTarget"},
		{"of a pod that succeeds meanwhile", "restart=Never app=a", 0, podstatus.Facts{Attempts: []podstatus.Attempt{exited("a", "1", 0, 0)}, Failure: eviction}, v1.PodStatus{}, "Succeeded Evicted DisruptionTarget"},
		{"of one that has ended before", "restart=Never app=a", 0, podstatus.Facts{Failure: eviction}, v1.PodStatus{Phase: v1.PodFailed, Reason: "Other"}, "Failed Other"},
		{"a deadline", "restart=Always app=a", 60, podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}, EnforceDeadline: true}, v1.PodStatus{StartTime: start}, "Failed DeadlineExceeded"},
		{"before the deadline", "restart=Always app=a", 61, podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}, EnforceDeadline: true}, v1.PodStatus{StartTime: start}, "Running"},
		{"a deadline that the node does not enforce", "restart=Always app=a", 60, podstatus.Facts{Attempts: []podstatus.Attempt{running("a", "1", 0)}}, v1.PodStatus{StartTime: start}, "Running"},
		{"done in time, seen late", "restart=Never app=a", 60, podstatus.Facts{Attempts: []podstatus.Attempt{exited("a", "1", 0, 0)}, EnforceDeadline: true}, v1.PodStatus{StartTime: start}, "Succeeded"},
	} {
		pod := parsePod(t, c.pod)
		if c.deadline > 0 {
			pod.Spec.ActiveDeadlineSeconds = &c.deadline
		}
		got := podstatus.Generate(pod, c.facts, c.previous, noon)
		words := strings.TrimSpace(string(got.Phase) + " " + got.Reason)
		if podstatus.FindCondition(got.Conditions, v1.DisruptionTarget) != nil {
			words += " DisruptionTarget"
		}
		check(t, c.story, words, c.want)
	}
}

func TestLastExitOfAStatusWithoutAState(t *testing.T) {
	status := parseStatus(t, "a:none,last(3)")
	if got := podstatus.LastExit(&status); got != nil {
		t.Errorf("got %+v, want nil: a status without a state is unknown, as it is for the phase", got)
	}
}
