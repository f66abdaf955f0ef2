package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// Pod explains the state of a pod. For a state without a rule of its own, Pod repeats the reported
// reason and message.
func Pod(f Facts) Explanation {
	if f.Pod == nil {
		return Explanation{State: StateUnknown, now: f.Now, Causes: []Cause{{Code: CodeNothingKnown, Text: "nothing is known of the pod", Next: do("check that the pod is on this node")}}}
	}
	f.Warnings = f.relevant()
	e := Explanation{Namespace: f.Pod.Namespace, Name: f.Pod.Name, now: f.Now, several: len(f.Pod.Spec.Containers)+len(f.Pod.Spec.InitContainers) > 1}
	switch phase := f.status().Phase; {
	case f.Pod.DeletionTimestamp != nil:
		terminating(&e, f)
	case phase == v1.PodFailed:
		failed(&e, f)
	case phase == v1.PodSucceeded:
		succeeded(&e, f)
	case f.Pod.Spec.NodeName == "":
		unscheduled(&e, f)
	case phase == v1.PodRunning:
		running(&e, f)
	case phase == v1.PodUnknown:
		lost(&e, f)
	default: // Pending, or nothing was reported yet
		starting(&e, f)
	}
	e.Notes = append(e.Notes, notes(f)...)
	conditional(&e, f)
	e.NotTrue, e.Delivery, e.Logs = untruths(f), delivery(f), logs(f)
	f.complete(&e)
	if e.Since != nil && e.Since.After(f.Now) {
		e.Since = nil // another clock; a state that holds has not begun in the future
	}
	return e
}

// unscheduled: no node has the pod yet.
func unscheduled(e *Explanation, f Facts) {
	e.State, e.Since = StateUnscheduled, known(f.Pod.CreationTimestamp.Time)
	c := f.condition(v1.PodScheduled)
	switch {
	case len(f.Pod.Spec.SchedulingGates) > 0:
		gates := make([]string, len(f.Pod.Spec.SchedulingGates))
		for i, gate := range f.Pod.Spec.SchedulingGates {
			gates[i] = gate.Name
		}
		e.Causes = []Cause{{Code: CodeSchedulingGated, Since: e.Since,
			Text: fmt.Sprintf("%s %s %s not been removed", plural(len(gates), "the scheduling gate", "the scheduling gates"), quoteAll(gates), plural(len(gates), "has", "have")),
			Next: &Next{Wait: "the scheduler takes up the pod when all gates are removed", Do: "find the controller that owns the gates, or remove them"}}}
	case f.status().NominatedNodeName != "":
		e.Causes = []Cause{{Code: CodeMakingRoom, Text: "node " + quote(f.status().NominatedNodeName) + " is being cleared for it: pods of lower priority are ending there",
			Next: wait("the scheduler gives it the node when they have ended")}}
	case c != nil && c.Status == v1.ConditionFalse:
		e.Since = known(c.LastTransitionTime.Time)
		if e.Causes = unschedulable(f, c.Message); len(e.Causes) == 0 {
			e.Causes = []Cause{{Code: CodeUnschedulable, Since: e.Since, Text: "the scheduler finds no node for it" + detail(withoutPreemption(c.Message)),
				Next: &Next{Do: "read the message", Wait: "the scheduler tries again when the cluster changes"}}}
		}
	case len(f.Absent) > 0:
		e.Causes = []Cause{{Code: CodeUnschedulable, Since: e.Since, Text: list(f.Absent) + " not found",
			Next: &Next{Do: "create the claim, or correct its name in the pod's resourceClaims", Command: "kubectl get resourceclaims -n " + f.Pod.Namespace, Wait: "the scheduler takes up the pod"}}}
	default:
		e.Causes = []Cause{{Code: CodeNotScheduledYet, Since: e.Since, Text: scheduler(f.Pod) + " has not looked at it yet",
			Next: &Next{Do: "check that the scheduler " + quote(schedulerOf(f.Pod)) + " runs", Wait: "the scheduler assigns a node"}}}
	}
}

// scheduler names the scheduler of a pod, if that is not the default one.
func scheduler(pod *v1.Pod) string {
	if name := schedulerOf(pod); name != v1.DefaultSchedulerName {
		return "its scheduler " + quote(name)
	}
	return "the scheduler"
}

func schedulerOf(pod *v1.Pod) string {
	if pod.Spec.SchedulerName == "" {
		return v1.DefaultSchedulerName
	}
	return pod.Spec.SchedulerName
}

// starting: a node has the pod, and not all of its containers have started.
func starting(e *Explanation, f Facts) {
	e.State, e.Since = StateStarting, known(f.Pod.CreationTimestamp.Time)
	if c := f.condition(v1.PodScheduled); c != nil && c.Status == v1.ConditionTrue {
		e.Since = known(c.LastTransitionTime.Time)
	}
	status := f.status()
	if len(status.ContainerStatuses)+len(status.InitContainerStatuses) == 0 && status.StartTime == nil {
		e.Causes = []Cause{notSeen(f)}
		return
	}
	if c := sandbox(f); c != nil {
		e.Causes = []Cause{*c}
		return
	}
	inits, regular := f.containers()
	if c := initCause(f, inits); c != nil {
		e.State, e.Causes = StateInitializing, []Cause{*c}
		return
	}
	e.Causes = unreadyContainers(f, regular)
	if len(e.Causes) == 0 {
		e.Causes = []Cause{{Code: CodeStatusBehind, Text: "all containers have started, and the phase has not followed yet",
			Next: wait("the node reports the pod as Running with its next change")}}
	}
}

func notSeen(f Facts) Cause {
	switch {
	case f.Waits != "":
		return Cause{Code: CodeWaitsOnNode, Text: f.Waits, Next: wait("the node starts it as soon as that has changed")}
	case !f.Node.Silent.IsZero():
		return nodeUnreachable(f)
	case f.Node.NotReady != "":
		return nodeNotReady(f)
	}
	return Cause{Code: CodeNotSeenByNode, Text: "node " + quote(f.Pod.Spec.NodeName) + " has not reported anything about it",
		Next: &Next{Wait: "the node takes up the pod", Do: "check that the node is Ready"}}
}

// sandbox explains why no container can start yet.
func sandbox(f Facts) *Cause {
	c := f.condition(v1.PodReadyToStartContainers)
	if c == nil || c.Status != v1.ConditionFalse || f.saysWhy() {
		return nil
	}
	cause := Cause{Code: CodeSandboxNotReady, Since: known(c.LastTransitionTime.Time), Text: "its volumes and network are being prepared" + detail(c.Message),
		Next: wait("the node starts the containers when both are there")}
	if w := f.clearest("FailedMount", "FailedAttachVolume", "FailedMapVolume"); w != nil {
		cause.Text = "its volumes cannot be prepared"
		cause.Causes, cause.Next = []Cause{{Code: CodeVolumesNotReady, Since: known(w.Last), Text: said(w), Next: adviceForMissing(w.Message)}}, nil
	} else if w := f.warning("", "FailedCreatePodSandBox", "NetworkNotReady", "FailedPrepareDynamicResources"); w != nil {
		cause.Text = "its sandbox cannot be created"
		cause.Causes, cause.Next = []Cause{{Code: CodeCreateFailed, Since: known(w.Last), Text: said(w), Next: adviceForSandbox(w.Message)}}, nil
	} else if f.Node.NotReady != "" {
		cause.Causes, cause.Next = []Cause{nodeNotReady(f)}, nil
	}
	return &cause
}

// saysWhy reports whether a container waits for a reason of its own: an image or a configuration that cannot be had.
func (f Facts) saysWhy() bool {
	return slices.ContainsFunc(slices.Concat(f.status().InitContainerStatuses, f.status().ContainerStatuses), func(s v1.ContainerStatus) bool {
		return s.State.Waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, s.State.Waiting.Reason)
	})
}

// running: the pod runs, and serves or not.
func running(e *Explanation, f Facts) {
	c := f.condition(v1.PodReady)
	if c != nil && c.Status == v1.ConditionTrue {
		e.State, e.Since = StateReady, known(c.LastTransitionTime.Time)
		e.Next = wait("nothing is waited for")
		return
	}
	e.State = StateNotReady
	if c != nil {
		e.Since = known(c.LastTransitionTime.Time)
	}
	if f.Node.ShuttingDown {
		e.Causes = append(e.Causes, Cause{Code: CodeNodeShutdown, Text: "the node is shutting down",
			Next: wait("the pod is ended with the node")})
	}
	inits, regular := f.containers()
	if initializing := initCause(f, inits); initializing != nil && !podstatus.HasInitialized(f.Pod, f.status()) {
		e.Causes = append(e.Causes, *initializing)
	} else {
		e.Causes = append(e.Causes, unreadyContainers(f, append(sidecars(inits), regular...))...)
	}
	e.Causes = append(e.Causes, gates(f)...)
	if len(e.Causes) == 0 {
		e.Causes = []Cause{withdrawnByOther(f, c)}
	}
	if slices.ContainsFunc(e.Causes, func(c Cause) bool { return c.leadsTo(CodeCrashLoop) }) {
		e.Since = nil // each restart begins it again; how often and in which time is said
	}
}

// withdrawnByOther explains a pod whose containers and gates are all fine.
func withdrawnByOther(f Facts, c *v1.PodCondition) Cause {
	if c == nil || c.Status == v1.ConditionUnknown {
		return Cause{Code: CodeStatusBehind, Text: "all containers are ready, and the Ready condition has not been evaluated yet",
			Next: wait("the node reports it with its next change")}
	}
	if f.Node.NotReady != "" {
		return nodeNotReady(f)
	}
	text := "all containers and readiness gates are ready, but its Ready condition is False"
	if c.Reason != "" {
		text += " with reason " + c.Reason
	}
	return Cause{Code: CodeReadySetByOther, Since: known(c.LastTransitionTime.Time), Text: text + detail(c.Message),
		Next: &Next{Wait: "the node writes its own findings again", Do: "look for a controller that writes pod status, such as node-lifecycle after a lost lease"}}
}

// gates explains the readiness gates that are not True.
func gates(f Facts) []Cause {
	var causes []Cause
	for _, gate := range f.Pod.Spec.ReadinessGates {
		c := f.condition(gate.ConditionType)
		if c == nil { // the API's pod may know more than the node
			c = podstatus.FindCondition(f.Pod.Status.Conditions, gate.ConditionType)
		}
		name := quote(string(gate.ConditionType))
		switch {
		case c == nil:
			causes = append(causes, Cause{Code: CodeReadinessGateMissing, Text: "readiness gate " + name + " was never set",
				Next: do("check the controller that is to set the condition " + name)})
		case c.Status != v1.ConditionTrue:
			text := "readiness gate " + name + " is " + string(c.Status)
			if c.Reason != "" {
				text += " (" + c.Reason + ")"
			}
			causes = append(causes, Cause{Code: CodeReadinessGateFalse, Since: known(c.LastTransitionTime.Time),
				Text: text + detail(c.Message), Next: wait("its controller sets it to True")})
		}
	}
	return causes
}

// lost: the control plane has given the node up.
func lost(e *Explanation, f Facts) {
	e.State = StateUnknown
	cause := nodeUnreachable(f)
	if f.status().Reason != "" {
		cause.Text += " (" + f.status().Reason + ")" + detail(f.status().Message)
	}
	e.Causes = []Cause{cause}
}

// notes are what is worth knowing beside the state.
func notes(f Facts) []Cause {
	var list []Cause
	if c := f.condition(v1.PodResizePending); c != nil && c.Status == v1.ConditionTrue {
		code, next := CodeResizeDeferred, wait("the node tries again when another pod frees resources")
		if c.Reason == v1.PodReasonInfeasible {
			code, next = CodeResizeInfeasible, do("ask for less, or move the pod to a larger node")
		}
		list = append(list, Cause{Code: code, Since: known(c.LastTransitionTime.Time), Text: "its resize is " + strings.ToLower(c.Reason) + detail(c.Message), Next: next})
	}
	if c := f.condition(v1.PodResizeInProgress); c != nil && c.Status == v1.ConditionTrue {
		list = append(list, Cause{Code: CodeResizeInProgress, Since: known(c.LastTransitionTime.Time), Text: "its resize is being applied" + detail(c.Message),
			Next: wait("the runtime applies the new resources")})
	}
	if c := f.condition(v1.DisruptionTarget); c != nil && c.Status == v1.ConditionTrue && !podstatus.IsTerminal(f.status().Phase) && f.Pod.DeletionTimestamp == nil {
		list = append(list, Cause{Code: CodeDisruption, Since: known(c.LastTransitionTime.Time), Text: "it is about to be ended (" + c.Reason + ")" + detail(c.Message),
			Next: wait("the pod is ended")})
	}
	list = append(list, failingLiveness(f)...)
	for _, s := range slices.Concat(f.status().InitContainerStatuses, f.status().ContainerStatuses) {
		if last := s.LastTerminationState.Terminated; s.RestartCount > 0 && last != nil && s.State.Running != nil {
			c := f.container(s.Name)
			note := Cause{Code: CodeRestarts, Container: s.Name, Since: known(last.FinishedAt.Time),
				Text: fmt.Sprintf("container %s has been restarted %s, last after %s", quote(s.Name), times(int(s.RestartCount)), ending(f, c, last)), Next: adviceForEnd(f, c, last)}
			switch k := killed(f, c, last); {
			case k != nil && !s.Ready && c.startupFails():
				note.Text = fmt.Sprintf("container %s has been restarted %s, last because the same probe failed", quote(s.Name), times(int(s.RestartCount)))
				note.Next = nil
			case k != nil:
				note.Causes, note.Next = []Cause{*k}, k.Next
			}
			list = append(list, note)
		}
	}
	return list
}

func sidecars(inits []container) []container {
	var list []container
	for _, c := range inits {
		if c.sidecar {
			list = append(list, c)
		}
	}
	return list
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
