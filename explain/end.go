package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	case status.Reason == "Evicted" && strings.Contains(status.Message, "EmptyDir volume"):
		e.State = StateEvicted
		e.Causes = []Cause{{Code: CodeEvicted, Since: e.Since, Text: "a volume was too large" + message,
			Next: &Next{Do: "raise sizeLimit of the volume, or have the pod write less", Wait: replaced}}}
	case status.Reason == "Evicted" && strings.Contains(status.Message, "ephemeral") && strings.Contains(status.Message, "exceed"):
		e.State = StateEvicted
		e.Causes = []Cause{{Code: CodeEvicted, Since: e.Since, Text: "it used more local storage than it may" + message,
			Next: &Next{Do: "raise the limit of ephemeral-storage, or have the pod write less", Wait: replaced}}}
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
		if ports := hostPorts(f.Pod); status.Reason == "NodePorts" && len(ports) > 0 {
			message = " (it asks for " + list(ports) + ")" + message
			next.Command = "kubectl get pods -A -o wide --field-selector spec.nodeName=" + f.Pod.Spec.NodeName
		}
		if status.Reason == "UnexpectedAdmissionError" && strings.Contains(status.Message, "evice") {
			next.Do = "check the device and its device plug-in on the node; create the pod again when they are well"
		}
		e.Causes = []Cause{{Code: r.code, Since: e.Since, Text: r.text + message, Next: &next}}
	case strings.HasPrefix(status.Reason, outOf) && len(status.Reason) > len(outOf):
		e.State = StateRejected
		e.Causes = []Cause{{Code: CodeRejected, Since: e.Since,
			Text: "the node has too little " + strings.TrimPrefix(status.Reason, outOf) + " left for it" + message,
			Next: &Next{Do: "free resources on the node or ask for less; a rejected pod is not tried again", Wait: replaced}}}
	case status.Reason != "":
		e.Causes = []Cause{{Code: CodeFailedReason, Since: e.Since, Text: "the node gave the reason " + status.Reason + message,
			Next: &Next{Do: "read the reason", Wait: replaced}}}
	case f.disrupted() != nil && status.Message == "":
		cause := *f.disrupted()
		cause.Text = strings.Replace(cause.Text, " ends it", " has ended it", 1)
		e.Causes = []Cause{cause}
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
			Text: what + quote(c.spec.Name) + " failed: " + ending(f, c, t), Next: adviceForEnd(f, c, t)}
		if when := at(f.Now, t.FinishedAt.Time); when != "" {
			cause.Text += " · ended" + when
		}
		cause.Next.Wait = "its restart policy does not start it again"
		if owner := metav1.GetControllerOf(f.Pod); owner != nil && owner.Kind == "Job" {
			cause.Next.Wait = "its Job makes another pod until it has failed as often as backoffLimit allows"
		}
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
	_, regular := f.containers()
	for _, c := range regular {
		if c.status == nil || c.status.State.Terminated == nil {
			continue
		}
		if k := killed(f, c, c.status.State.Terminated); k != nil {
			e.Causes = []Cause{{Code: CodeCompleted, Container: c.spec.Name, Since: e.Since, Behind: true, Causes: []Cause{*k},
				Text: "container " + quote(c.spec.Name) + " ended with exit code 0, which counts as success: its work may not be done"}}
			return
		}
	}
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

// signal names the signal that ended a container, by what the runtime says or by the
// convention of shells that the exit code is 128 and the signal's number.
func signal(t *v1.ContainerStateTerminated) string {
	number := int(t.Signal)
	if number == 0 && t.ExitCode > 128 && t.ExitCode < 128+65 {
		number = int(t.ExitCode) - 128
	}
	switch number { // of Linux, where the container ran
	case 9:
		return "SIGKILL"
	case 15:
		return "SIGTERM"
	case 11:
		return "SIGSEGV"
	case 6:
		return "SIGABRT"
	case 2:
		return "SIGINT"
	case 7:
		return "SIGBUS"
	case 4:
		return "SIGILL"
	case 8:
		return "SIGFPE"
	case 1:
		return "SIGHUP"
	case 13:
		return "SIGPIPE"
	case 0:
		return ""
	default:
		return fmt.Sprintf("signal %d", number)
	}
}

// runRemedies are what to do about a run by what it said last.
var runRemedies = []struct{ words, do string }{
	{"exec format error", "use an image for the node's architecture; a script needs a first line such as #!/bin/sh"},
	{"wrong ownership", ownerOfFiles}, {"invalid permissions", ownerOfFiles},
	{"incompatible with server", "use the version that has written the data, or migrate them"},
	{"vm.max_map_count", "raise vm.max_map_count on the node (sysctl -w vm.max_map_count=262144), as with an init container that may"},
	{"inotify", inotify}, {"fsnotify", inotify},
	{"too many open files", "raise the limit of open files of the runtime, or find what does not close them; of watches of files, raise fs.inotify.max_user_instances on the node"},
	{"cannot fork", processes}, {"can't fork", processes}, {"fork: resource temporarily unavailable", processes}, {"fork: retry", processes}, {"unable to create native thread", processes}, {"pthread_create", processes},
	{"too many connections", connections}, {"connection slots", connections}, {"too many clients", connections},
	{"bind() to", "listen on a port from 1024 on, or add the capability NET_BIND_SERVICE"},
	{"bind: permission denied", "listen on a port from 1024 on, or add the capability NET_BIND_SERVICE"},
	{"address already in use", "another process has the port: change the port of one of them"},
	{"password authentication failed", "correct the user name or password that the container is given"},
	{"access denied for user", "correct the user name or password that the container is given"},
	{"authentication failed", "correct the credentials that the container is given"},
	{"no space left on device", "free space in the volume or on the node"},
	{"read-only file system", "write to a volume, or drop readOnlyRootFilesystem"},
	{"permission denied", "check the user that the container runs as, and the modes of the files it uses"},
	{"operation not permitted", "check the capabilities and the user of the container"},
	{"is forbidden: user", "bind a role with that right to its service account"},
	{"certificate", "check the certificate that the message names: who signed it, for which host, until when"},
	{"x509", "check the certificate that the message names: who signed it, for which host, until when"},
	{"exists but is not empty", "give it an empty directory, such as a subdirectory of the volume (subPath)"},
	{" enotfound", nameOfHost}, {"eai_again", nameOfHost}, {"unknownhost", nameOfHost}, {"name or service not known", nameOfHost},
	{"name resolution", nameOfHost}, {"could not translate host name", nameOfHost},
	{"no such host", nameOfHost}, {"host not found", nameOfHost},
	{"could not resolve", nameOfHost},
	{"connection refused", "check that what it connects to runs, and its host and port"},
	{"i/o timeout", "check that what it connects to is reachable; a network policy may be in the way"},
	{"outofmemoryerror", "give the program more memory, and raise the limit of the container with it"},
	{"heap out of memory", "give the program more memory, and raise the limit of the container with it"},
	{"modulenotfounderror", "install the module in the image, or correct its path"},
	{"no module named", "install the module in the image, or correct its path"},
	{"cannot find module", "install the module in the image, or correct its path"},
	{"keyerror", setVariable}, {"environment variable", setVariable}, {"env var", setVariable},
	{"unrecognized option", correctArguments}, {"unrecognized argument", correctArguments}, {"unknown flag", correctArguments}, {"unknown option", correctArguments},
	{"flag provided but not defined", correctArguments}, {"invalid option", correctArguments}, {"unknown command", correctArguments},
	{"filenotfound", "provide the file, with a volume or in the image, or correct its path"},
	{"no such file or directory", "provide the file, with a volume or in the image, or correct its path"},
	{"yaml: line", correctConfiguration}, {"invalid character", correctConfiguration}, {"toml: line", correctConfiguration}, {"unmarshal", correctConfiguration}, {"invalid configuration", correctConfiguration},
	{"unauthorized", "correct the credentials that the container is given"},
	{"is not specified", setVariable}, {"not set", setVariable}, {"must be set", setVariable}, {"is required", setVariable}, {"not configured", setVariable}, {"missing required", setVariable},
	{"does not exist", "create what the message names, or correct its name"},
	{"out of memory", "give the program more memory, and raise the limit of the container with it"},
}

// Advice shared by several messages.
const (
	nameOfHost           = "correct the name of the host, create the Service, or check the cluster's DNS"
	setVariable          = "set the variable or setting that the message names"
	correctArguments     = "correct the arguments in command and args"
	ownerOfFiles         = "set fsGroup, or runAsUser to the owner of the files: they belong to another user, or others may read them"
	inotify              = "raise fs.inotify.max_user_instances and max_user_watches on the node"
	processes            = "have it start fewer processes and threads, or raise their limit (the node's podPidsLimit)"
	connections          = "use fewer connections, or have the server allow more"
	correctConfiguration = "correct the configuration file that the message names"
)

// ownExec is what a runtime writes to the log of a container whose command it cannot execute.
var ownExec = regexp.MustCompile(`^(?:exec /\S+|.*exec user process caused): no such file or directory`)

// adviceForEnd is what to do about a container that ended.
func adviceForEnd(f Facts, c container, t *v1.ContainerStateTerminated) *Next {
	said := strings.ToLower(lastWords(c, t))
	top := "kubectl top pod -n " + f.Pod.Namespace + " " + f.Pod.Name + " --containers"
	switch {
	case t.Reason == "OOMKilled" && f.memoryLimit(c.spec.Name) == "":
		return &Next{Do: "find what uses the memory; ask for what the container needs in its requests, and limit it", Command: top}
	case t.Reason == "OOMKilled":
		return &Next{Do: "raise the memory limit, or find what uses the memory", Command: top}
	case t.Reason == "ContainerStatusUnknown":
		return do("check whether the node was restarted")
	case t.ExitCode == 0 && (c.spec.LivenessProbe != nil || c.spec.StartupProbe != nil):
		return do("check whether the command is meant to end, and its liveness and startup probes: the node ends a container whose probe fails")
	case t.ExitCode == 0:
		return do("check whether the command is meant to end")
	}
	starts := t.Reason == "StartError" || t.Reason == "ContainerCannotRun"
	if !starts && ownExec.MatchString(said) { // said in the log by the runtime's own process, which was to become the command
		return do("correct the path of the command, the interpreter of its first line, and the line ends: Windows ones are part of the interpreter's name")
	}
	if starts {
		if advice := remedyFor(said, creationRemedies); advice != "" && !strings.Contains(said, "executable file not found") {
			return &Next{Do: advice, Command: "kubectl describe pod -n " + f.Pod.Namespace + " " + f.Pod.Name}
		}
	}
	if starts || t.ExitCode == 126 || t.ExitCode == 127 {
		switch missing := strings.Contains(said, "not found") || strings.Contains(said, "no such file"); {
		case starts && len(c.spec.Command) > 0 && strings.Contains(strings.TrimSpace(c.spec.Command[0]), " ") && missing:
			return do("give each argument as an item of its own: command has them in one string")
		case starts && c.spec.WorkingDir != "" && strings.Contains(said, strings.ToLower(c.spec.WorkingDir)), strings.Contains(said, "chdir"):
			return do("correct the working directory (workingDir); the image must have it")
		case !starts && missing:
			return do("correct the name of the command that is not found, or install it in the image")
		case strings.Contains(said, "permission denied"):
			return do("make the command executable")
		case missing:
			return do("correct the path of the command; the image must have it, and the interpreter of its first line")
		}
	}
	for _, r := range runRemedies {
		if strings.Contains(said, r.words) {
			return do(r.do)
		}
	}
	switch {
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun":
		return do("check that the command exists and may be executed, and the working directory")
	case t.ExitCode == 126:
		return do("check that the file which the log names can be executed: its mode, and that it is not a directory")
	case t.ExitCode == 127:
		return do("check the name of the command that the log names, and PATH")
	case signal(t) == "SIGSEGV", signal(t) == "SIGABRT", signal(t) == "SIGBUS", signal(t) == "SIGILL":
		return do("look for a crash of the program in its log")
	case signal(t) == "SIGKILL" && (c.spec.LivenessProbe != nil || c.spec.StartupProbe != nil):
		return do("check its liveness and startup probes, and the kernel's log, which names processes killed for lack of memory")
	case signal(t) == "SIGKILL":
		return do("find what killed it: the kernel's log names processes killed for lack of memory")
	case signal(t) == "SIGTERM" && c.spec.Lifecycle != nil && c.spec.Lifecycle.PostStart != nil:
		return do("check its postStart hook: the node ends a container so if the hook fails")
	case signal(t) == "SIGTERM" && (c.spec.LivenessProbe != nil || c.spec.StartupProbe != nil):
		return do("check its liveness and startup probes: the node ends a container so if one fails")
	case signal(t) == "SIGTERM":
		return do("find what asked it to stop")
	case c.Log != nil && len(c.Log.Lines) == 0 && t.Message == "":
		return do("have the program log why it ends: the log of that run is empty")
	default:
		return do("read the log of that run")
	}
}
