package podstatus_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// The generators below draw small pods: few names, few exit codes, few reasons, so that
// statuses and specs meet and miss each other often.

func drawSmallPod(t *rapid.T) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "default", UID: testUID,
		Generation:  rapid.Int64Range(0, 9).Draw(t, "generation"),
		Annotations: map[string]string{},
	}}
	if rapid.IntRange(0, 4).Draw(t, "static") == 0 {
		pod.Annotations["kubernetes.io/config.source"] = "file"
	}
	pod.Spec.RestartPolicy = rapid.SampledFrom([]v1.RestartPolicy{
		v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever, v1.RestartPolicyNever, "",
	}).Draw(t, "restartPolicy")
	for i := range rapid.IntRange(0, 3).Draw(t, "inits") {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, drawSpecContainer(t, fmt.Sprintf("i%d", i)))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "apps") {
		pod.Spec.Containers = append(pod.Spec.Containers, drawSpecContainer(t, fmt.Sprintf("a%d", i)))
	}
	for range rapid.IntRange(0, 2).Draw(t, "gates") {
		gate := rapid.SampledFrom([]v1.PodConditionType{"x.io/lb", "x.io/dns"}).Draw(t, "gate")
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: gate})
	}
	return pod
}

func drawSpecContainer(t *rapid.T, name string) v1.Container {
	c := v1.Container{Name: name}
	policy := rapid.SampledFrom([]v1.ContainerRestartPolicy{
		"", "", v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever,
	}).Draw(t, "containerPolicy")
	if policy != "" {
		c.RestartPolicy = &policy
	}
	if rapid.IntRange(0, 3).Draw(t, "hasRule") == 0 {
		c.RestartPolicyRules = []v1.ContainerRestartRule{{
			Action: rapid.SampledFrom([]v1.ContainerRestartRuleAction{
				v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers, "Other",
			}).Draw(t, "action"),
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{
				Operator: rapid.SampledFrom([]v1.ContainerRestartRuleOnExitCodesOperator{
					v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn,
				}).Draw(t, "operator"),
				Values: []int32{drawExitCode(t)},
			},
		}}
	}
	return c
}

// drawReport draws a pod status whose init statuses line up with the spec, as a node reports them.
func drawReport(t *rapid.T, pod *v1.Pod) *v1.PodStatus {
	status := &v1.PodStatus{
		Phase: rapid.SampledFrom([]v1.PodPhase{
			v1.PodPending, v1.PodRunning, v1.PodRunning, v1.PodSucceeded, v1.PodFailed,
		}).Draw(t, "phase"),
		InitContainerStatuses: drawReportedList(t, pod.Spec.InitContainers),
		ContainerStatuses:     drawReportedList(t, pod.Spec.Containers),
	}
	if rapid.IntRange(0, 4).Draw(t, "stranger") == 0 {
		status.ContainerStatuses = append(status.ContainerStatuses, drawReported(t, "ghost"))
	}
	for _, c := range []v1.PodConditionType{
		v1.PodScheduled, v1.PodReady, v1.ContainersReady, v1.PodInitialized, v1.AllContainersRestarting, "x.io/lb", "x.io/dns",
	} {
		if !rapid.Bool().Draw(t, "has"+string(c)) {
			continue
		}
		status.Conditions = append(status.Conditions, v1.PodCondition{
			Type:               c,
			Status:             rapid.SampledFrom([]v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}).Draw(t, "status"),
			LastTransitionTime: earlier,
		})
	}
	return status
}

// drawReportedList draws statuses for the first n containers; with n = 0 they may be nil.
func drawReportedList(t *rapid.T, specs []v1.Container) []v1.ContainerStatus {
	n := len(specs)
	if rapid.IntRange(0, 3).Draw(t, "partial") == 0 {
		n = rapid.IntRange(0, n).Draw(t, "reported")
	}
	if n == 0 && rapid.Bool().Draw(t, "nil") {
		return nil
	}
	statuses := []v1.ContainerStatus{}
	for i := range n {
		statuses = append(statuses, drawReported(t, specs[i].Name))
	}
	return statuses
}

func drawReported(t *rapid.T, name string) v1.ContainerStatus {
	s := v1.ContainerStatus{Name: name, Ready: rapid.Bool().Draw(t, "ready")}
	switch rapid.IntRange(0, 2).Draw(t, "started") {
	case 1:
		s.Started = new(true)
	case 2:
		s.Started = new(false)
	}
	switch rapid.IntRange(0, 9).Draw(t, "state") {
	case 0:
	case 1, 2:
		s.State.Waiting = &v1.ContainerStateWaiting{}
	case 3, 4, 5:
		s.State.Running = &v1.ContainerStateRunning{}
		s.ContainerID = "c://" + name
	default:
		s.State.Terminated = drawExit(t)
		s.ContainerID = "c://" + name
	}
	if rapid.IntRange(0, 3).Draw(t, "ranBefore") == 0 {
		s.LastTerminationState.Terminated = drawExit(t)
	}
	return s
}

func drawExit(t *rapid.T) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: drawExitCode(t),
		Reason:   rapid.SampledFrom([]string{"", "Error", "RestartingAllContainers"}).Draw(t, "exitReason"),
	}
}

func drawExitCode(t *rapid.T) int32 {
	return rapid.SampledFrom([]int32{0, 0, 1, 42}).Draw(t, "exitCode")
}
