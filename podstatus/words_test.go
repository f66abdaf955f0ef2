package podstatus_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The tests of this package write pods and statuses as words, so that a table row or a
// story fits on a line:
//
//	pod     restart=Never gen=3 init=setup sidecar=proxy app=main/Never/In(42)->Restart gate=x.io/lb source=file mirror deleted
//	status  setup:exited(0),ready proxy:running,started main:waiting(CrashLoopBackOff),last(1)
//	cond    Ready=True x.io/lb=False
//
// A container that runs or ran has the ID "c://NAME" unless id=… says otherwise.

// fataler is what the parsers need of testing.T, rapid.T and datadriven.TestData.
type fataler interface {
	Fatalf(format string, args ...any)
}

// noon is the time at which tables happen.
var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func parsePod(t fataler, words string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "default", UID: testUID, Annotations: map[string]string{},
	}}
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "restart":
			pod.Spec.RestartPolicy = v1.RestartPolicy(value)
		case "gen":
			pod.Generation = int64(parseInt(t, value))
		case "init":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, parseContainer(t, value))
		case "sidecar":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, parseContainer(t, value+"/Always"))
		case "app":
			pod.Spec.Containers = append(pod.Spec.Containers, parseContainer(t, value))
		case "gate":
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: v1.PodConditionType(value)})
		case "source":
			pod.Annotations["kubernetes.io/config.source"] = value
		case "version":
			pod.ResourceVersion = value
		case "mirror":
			pod.Annotations["kubernetes.io/config.mirror"] = "hash"
		case "deleted":
			pod.DeletionTimestamp = &metav1.Time{Time: noon}
		default:
			t.Fatalf("pod word %q is not known", word)
		}
	}
	return pod
}

// parseContainer reads NAME[/POLICY][/OPERATOR(CODES)->ACTION]…
func parseContainer(t fataler, text string) v1.Container {
	parts := strings.Split(text, "/")
	c := v1.Container{Name: parts[0]}
	for _, part := range parts[1:] {
		operator, rest, isRule := strings.Cut(part, "(")
		if !isRule {
			policy := v1.ContainerRestartPolicy(part)
			c.RestartPolicy = &policy
			continue
		}
		codes, action, ok := strings.Cut(rest, ")->")
		if !ok {
			t.Fatalf("restart rule %q has no )->ACTION", part)
		}
		rule := v1.ContainerRestartRule{Action: v1.ContainerRestartRuleAction(action)}
		if operator != "" {
			rule.ExitCodes = &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOperator(operator)}
			for code := range strings.SplitSeq(codes, ",") {
				rule.ExitCodes.Values = append(rule.ExitCodes.Values, int32(parseInt(t, code)))
			}
		}
		c.RestartPolicyRules = append(c.RestartPolicyRules, rule)
	}
	return c
}

// parseStatuses reads a list of container statuses. "nil" is nil, "" is an empty list.
func parseStatuses(t fataler, words string) []v1.ContainerStatus {
	if words == "nil" {
		return nil
	}
	statuses := []v1.ContainerStatus{}
	for word := range strings.FieldsSeq(words) {
		statuses = append(statuses, parseStatus(t, word))
	}
	return statuses
}

// parseStatus reads NAME:STATE[,ready][,started][,notstarted][,last(CODE)][,id=ID].
func parseStatus(t fataler, word string) v1.ContainerStatus {
	name, rest, _ := strings.Cut(word, ":")
	facts := strings.Split(rest, ",")
	s := v1.ContainerStatus{Name: name, State: parseState(t, facts[0])}
	if s.State.Running != nil || s.State.Terminated != nil {
		s.ContainerID = "c://" + name
	}
	for _, fact := range facts[1:] {
		switch {
		case fact == "ready":
			s.Ready = true
		case fact == "started":
			s.Started = new(true)
		case fact == "notstarted":
			s.Started = new(false)
		case strings.HasPrefix(fact, "last("):
			s.LastTerminationState = parseState(t, "exited("+strings.TrimPrefix(fact, "last("))
		case strings.HasPrefix(fact, "id="):
			s.ContainerID = strings.TrimPrefix(fact, "id=")
		default:
			t.Fatalf("container fact %q is not known", fact)
		}
	}
	return s
}

// parseState reads running, waiting, waiting(REASON), exited(CODE), exited(CODE;REASON) or none.
func parseState(t fataler, text string) v1.ContainerState {
	word, inner, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	switch word {
	case "running":
		return v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	case "waiting":
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: inner}}
	case "exited":
		code, reason, _ := strings.Cut(inner, ";")
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: int32(parseInt(t, code)), Reason: reason}}
	case "none":
		return v1.ContainerState{}
	}
	t.Fatalf("container state %q is not known", text)
	return v1.ContainerState{}
}

// parseConditions reads TYPE=STATUS words.
func parseConditions(words string) []v1.PodCondition {
	var conditions []v1.PodCondition
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		conditions = append(conditions, v1.PodCondition{Type: v1.PodConditionType(key), Status: v1.ConditionStatus(value)})
	}
	return conditions
}

func parseInt(t fataler, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%q is not a number", text)
	}
	return n
}

// describe is the inverse for conditions: TYPE=STATUS (REASON) "MESSAGE" gen=N.
func describe(c v1.PodCondition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%s", c.Type, c.Status)
	if c.Reason != "" {
		fmt.Fprintf(&b, " (%s)", c.Reason)
	}
	if c.Message != "" {
		fmt.Fprintf(&b, " %q", c.Message)
	}
	if c.ObservedGeneration != 0 {
		fmt.Fprintf(&b, " gen=%d", c.ObservedGeneration)
	}
	return b.String()
}

// describeState is the inverse of parseState.
func describeState(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil && s.Waiting.Reason != "":
		return "waiting(" + s.Waiting.Reason + ")"
	case s.Waiting != nil:
		return "waiting"
	case s.Terminated != nil && s.Terminated.Reason != "":
		return fmt.Sprintf("exited(%d;%s)", s.Terminated.ExitCode, s.Terminated.Reason)
	case s.Terminated != nil:
		return fmt.Sprintf("exited(%d)", s.Terminated.ExitCode)
	}
	return "none"
}

// describeStates writes NAME:STATE words.
func describeStates(statuses []v1.ContainerStatus) string {
	words := make([]string, 0, len(statuses))
	for _, s := range statuses {
		words = append(words, s.Name+":"+describeState(s.State))
	}
	return strings.Join(words, " ")
}

// check compares one line of a table.
func check(t *testing.T, story, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", story, got, want)
	}
}
