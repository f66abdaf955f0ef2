package explain

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failedReason is what the reason of a failed pod means.
type failedReason struct {
	state State
	code  Code
	text  string
	next  Next
}

// failedReasons are the reasons that the kubelet, statusd and the control plane give to a
// failed pod. Reasons of a rejection are in rejections.
var failedReasons = map[string]failedReason{
	"Evicted":                  {StateEvicted, CodeEvicted, "the node ran short of a resource", Next{Do: "ask for what the pod needs in requests, or give the node more", Wait: replaced}},
	"Preempting":               {StateEvicted, CodePreempted, "it had to make room for a critical pod", Next{Wait: replaced}},
	"DeadlineExceeded":         {StateFailed, CodeDeadlineExceeded, "it was active for longer than its activeDeadlineSeconds allow", Next{Do: "raise activeDeadlineSeconds, or make the work shorter"}},
	"Terminated":               {StateFailed, CodeNodeShutdown, "the node was shut down", Next{Wait: replaced}},
	"NodeShutdown":             {StateFailed, CodeNodeShutdown, "the node was shut down", Next{Wait: replaced}},
	"Shutdown":                 {StateFailed, CodeNodeShutdown, "the node was shut down", Next{Wait: replaced}},
	"NodeLost":                 {StateFailed, CodeNodeLost, "its node was lost", Next{Do: "check the machine", Wait: replaced}},
	"NodeAffinity":             {StateRejected, CodeRejected, "the node does not have the labels that it asks for", Next{Do: "label the node, or change nodeSelector and affinity"}},
	"NodePorts":                {StateRejected, CodeRejected, "another pod of the node has a host port that it asks for", Next{Do: "change the host port, or end the other pod"}},
	"TaintToleration":          {StateRejected, CodeRejected, "the node has a taint that it does not tolerate", Next{Do: "add a toleration, or remove the taint"}},
	"PodFeatureUnsupported":    {StateRejected, CodeRejected, "it asks for what the node's runtime cannot do", Next{Do: "remove the fields that the message names, or use another node"}},
	"UnexpectedAdmissionError": {StateRejected, CodeRejected, "the node could not decide whether to take it", Next{Do: "read the message; create the pod again when it is put right"}},
	"TopologyAffinityError":    {StateRejected, CodeRejected, "its resources cannot be taken from one NUMA node as the policy wants", Next{Do: "ask for less, or relax the topology policy"}},
	"AppArmor":                 {StateRejected, CodeRejected, "its AppArmor profile cannot be used", Next{Do: "load the profile on the node"}},
	"SysctlForbidden":          {StateRejected, CodeRejected, "it asks for a sysctl that the node does not allow", Next{Do: "allow the sysctl on the node, or remove it"}},
	"PodOSNotSupported":        {StateRejected, CodeRejected, "it is for another operating system", Next{Do: "use a node with that operating system"}},
	"InvalidNodeInfo":          {StateRejected, CodeRejected, "the node did not know itself yet", Next{Do: "create the pod again"}},
}

// outOf begins the reason of a pod for which a resource of the node did not suffice.
const outOf = "OutOf"

// replaced is what is waited for when a pod has failed that has a controller.
const replaced = "its controller makes another pod"

// failed: the pod has failed for good.
func failed(e *Explanation, f Facts) {
	whyFailed(e, f)
	if metav1.GetControllerOf(f.Pod) != nil {
		return
	}
	for i := range e.Causes { // no other pod comes by itself
		if next := e.Causes[i].Next; next != nil && next.Wait == replaced {
			next.Wait = ""
			next.Do = strings.TrimPrefix(next.Do+"; create it again, since it has no controller", "; ")
		}
	}
}

func whyFailed(e *Explanation, f Facts) {
	status := f.status()
	message := detail(strings.TrimPrefix(status.Message, "Pod was rejected: "))
	e.State, e.Since = StateFailed, ended(f)
	r, ok := failedReasons[status.Reason]
	switch {
	case status.Reason == "Evicted" && strings.HasPrefix(status.Message, "Pod was rejected"):
		e.State = StateRejected
		e.Causes = []Cause{{Code: CodeRejected, Since: e.Since, Text: "the node was under pressure" + message + pressure(f),
			Next: &Next{Do: "free what the node is short of; a rejected pod is not tried again", Wait: replaced}}}
	case status.Reason == "Evicted":
		next, text := r.next, r.text
		if left := whatWasLeft(f); left != "" {
			text = "the node had " + left + " left"
		}
		e.State = r.state
		e.Causes = []Cause{{Code: r.code, Since: e.Since, Text: text + message + pressure(f), Next: &next}}
	case ok:
		e.State = r.state
		next := r.next
		e.Causes = []Cause{{Code: r.code, Since: e.Since, Text: r.text + message, Next: &next}}
	case strings.HasPrefix(status.Reason, outOf) && len(status.Reason) > len(outOf):
		e.State = StateRejected
		e.Causes = []Cause{{Code: CodeRejected, Since: e.Since,
			Text: "the node has too little " + strings.TrimPrefix(status.Reason, outOf) + " left for it" + message,
			Next: &Next{Do: "free resources on the node or ask for less; a rejected pod is not tried again", Wait: replaced}}}
	case status.Reason != "":
		e.Causes = []Cause{{Code: CodeFailedReason, Since: e.Since, Text: "the node gave the reason " + status.Reason + message,
			Next: &Next{Do: "read the reason", Wait: replaced}}}
	default:
		e.Causes = failedContainers(f)
	}
}

// pressure says what the node is still short of.
func pressure(f Facts) string {
	if len(f.Node.Pressure) == 0 {
		return ""
	}
	names := make([]string, len(f.Node.Pressure))
	for i, p := range f.Node.Pressure {
		names[i] = string(p)
	}
	return "; the node still has " + list(names)
}

// failedContainers explains a pod that failed because its containers did.
func failedContainers(f Facts) []Cause {
	var causes []Cause
	inits, regular := f.containers()
	for _, c := range append(inits, regular...) {
		if c.status == nil || c.status.State.Terminated == nil || c.status.State.Terminated.ExitCode == 0 || c.sidecar {
			continue
		}
		t := c.status.State.Terminated
		what := "container "
		if c.kind != "container" {
			what = "init container "
		}
		cause := Cause{Code: CodeContainersFailed, Container: c.spec.Name, Since: known(t.FinishedAt.Time),
			Text: what + quote(c.spec.Name) + " ended" + at(f.Now, t.FinishedAt.Time) + " with " + ending(f, c.spec.Name, t), Next: adviceForEnd(f, c.spec.Name, t)}
		cause.Next.Wait = "its restart policy does not start it again"
		causes = append(causes, cause)
	}
	if len(causes) == 0 {
		causes = []Cause{{Code: CodeFailedReason, Text: "the node reported the failure without a reason" + detail(f.status().Message),
			Next: do("read the log of its containers and the node's")}}
	}
	return causes
}

// succeeded: all containers have done their work.
func succeeded(e *Explanation, f Facts) {
	e.State, e.Since = StateSucceeded, ended(f)
	e.Causes = []Cause{{Code: CodeCompleted, Since: e.Since, Text: "all containers ended with exit code 0",
		Next: wait("the pod stays as a record until it is deleted")}}
}

// ended is when the last container ended.
func ended(f Facts) *time.Time {
	last := f.Pod.CreationTimestamp.Time
	found := false
	for _, s := range slices.Concat(f.status().InitContainerStatuses, f.status().ContainerStatuses) {
		if t := s.State.Terminated; t != nil && !t.FinishedAt.IsZero() {
			last, found = latest(last, t.FinishedAt.Time), true
		}
	}
	if !found {
		if c := f.condition(v1.PodReady); c != nil && !c.LastTransitionTime.IsZero() {
			return known(c.LastTransitionTime.Time)
		}
		return nil
	}
	return known(last)
}

// ending says how a container ended: "exit code 3", "exit code 137 (SIGKILL), out of memory".
func ending(f Facts, container string, t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if name := signal(t); name != "" {
		text += " (" + name + ")"
	}
	switch t.Reason {
	case "", "Error", "Completed":
	case "OOMKilled":
		text += ", killed for lack of memory" + f.shortOfMemory(container, t)
	case "StartError", "ContainerCannotRun":
		text += " (it could not be started)"
	case "ContainerStatusUnknown":
		text += " (its end was not seen)"
	default:
		text += ", reason " + t.Reason
	}
	if message := strings.TrimSpace(t.Message); message != "" {
		text += " and message " + quote(shorten(message))
	}
	return text
}

// signal names the signal that ended a container, by what the runtime says or by the
// convention of shells that the exit code is 128 and the signal's number.
func signal(t *v1.ContainerStateTerminated) string {
	number := int(t.Signal)
	if number == 0 && t.ExitCode > 128 && t.ExitCode < 128+65 {
		number = int(t.ExitCode) - 128
	}
	switch s := syscall.Signal(number); s {
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGSEGV:
		return "SIGSEGV"
	case syscall.SIGABRT:
		return "SIGABRT"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGBUS:
		return "SIGBUS"
	case syscall.SIGILL:
		return "SIGILL"
	case syscall.SIGFPE:
		return "SIGFPE"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGPIPE:
		return "SIGPIPE"
	case 0:
		return ""
	default:
		return fmt.Sprintf("signal %d", number)
	}
}

// adviceForEnd is what to do about a container that ended.
func adviceForEnd(f Facts, container string, t *v1.ContainerStateTerminated) *Next {
	switch {
	case t.Reason == "OOMKilled" && f.memoryLimit(container) == "":
		return do("find what uses the memory; ask for what the container needs in its requests, and limit it")
	case t.Reason == "OOMKilled":
		return do("raise the memory limit, or find what uses the memory")
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun":
		return do("check that the command exists and may be executed, and the working directory")
	case t.Reason == "ContainerStatusUnknown":
		return do("check whether the node was restarted")
	case t.ExitCode == 0:
		return do("check whether the command is meant to end")
	case t.ExitCode == 126:
		return do("make the command executable")
	case t.ExitCode == 127:
		return do("check the name of the command and PATH")
	case signal(t) == "SIGSEGV", signal(t) == "SIGABRT", signal(t) == "SIGBUS", signal(t) == "SIGILL":
		return do("look for a crash of the program in its log")
	case signal(t) == "SIGKILL":
		return do("find what killed it: the kernel's log names processes killed for lack of memory")
	case signal(t) == "SIGTERM":
		return do("find what asked it to stop")
	default:
		return do("read the log of that run")
	}
}
