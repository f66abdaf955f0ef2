package explain

import (
	"fmt"
	"strings"
	"time"
)

// waiting is what a reason to wait means.
type waitingReason struct {
	code Code
	text string
	do   string
}

// waitingReasons are the reasons that the kubelet and statusd give, other than those with a
// function of their own in whyWaiting.
var waitingReasons = map[string]waitingReason{
	"ImagePullBackOff":           {CodeImage, "its image cannot be pulled, and the next try is later", "check the image's name, that the registry is reachable, and the pull secrets"},
	"ErrImagePull":               {CodeImage, "its image cannot be pulled", "check the image's name, that the registry is reachable, and the pull secrets"},
	"ErrImageNeverPull":          {CodeImage, "its image is not on the node and its policy is never to pull it", "put the image on the node, or change imagePullPolicy"},
	"InvalidImageName":           {CodeImage, "the name of its image is not valid", "correct the image's name"},
	"ImageInspectError":          {CodeImage, "its image on the node cannot be read", "remove the image from the node, so that it is pulled again"},
	"RegistryUnavailable":        {CodeImage, "the registry of its image does not answer", "check that the registry is reachable from the node"},
	"SignatureValidationFailed":  {CodeImage, "the signature of its image is not valid", "sign the image, or change the node's policy"},
	"CreateContainerConfigError": {CodeConfig, "its configuration cannot be put together", ""},
	"CreateContainerError":       {CodeCreateFailed, "it cannot be created", "read the message; the fault is in the container's spec or in the runtime"},
	"RunContainerError":          {CodeStartFailed, "it cannot be started", "check the command and the working directory"},
	"PreCreateHookError":         {CodeHookFailed, "the step before its creation failed", "read the message and check the node"},
	"PreStartHookError":          {CodeHookFailed, "the step before its start failed", "read the message and check the node"},
	"PostStartHookError":         {CodeHookFailed, "its postStart hook failed", "check the hook's command or URL"},
	"RestartingAllContainers":    {CodeRestartingAll, "all containers of the pod are being restarted", ""},
}

// whyWaiting explains a container that has not started.
func whyWaiting(f Facts, c container) Cause {
	w := c.status.State.Waiting
	switch w.Reason {
	case "CrashLoopBackOff":
		return crashLoop(f, c)
	case "PodInitializing":
		return initializing(f, c)
	case "ContainerCreating", "":
		return creating(f, c)
	}
	r, ok := waitingReasons[w.Reason]
	if !ok {
		return Cause{Code: CodeWaiting, Text: "it waits with reason " + w.Reason + detail(w.Message),
			Next: &Next{Wait: "the node tries again", Do: "read the reason; the node has given no more"}}
	}
	cause := Cause{Code: r.code, Text: r.text + detail(w.Message), Next: &Next{Do: r.do, Wait: "the node tries again"}}
	if r.code == CodeConfig {
		cause.Next = adviceForMissing(w.Message)
	}
	if c.NextStart.After(f.Now) {
		cause.Next.At = known(c.NextStart)
	}
	return cause
}

func crashLoop(f Facts, c container) Cause {
	cause := Cause{Code: CodeCrashLoop, Text: "it is in crash-loop back-off"}
	last := c.status.LastTerminationState.Terminated
	switch {
	case c.NextStart.After(f.Now):
		cause.Text += ", next start " + in(f.Now, c.NextStart)
	case !c.NextStart.IsZero():
		cause.Text += ", next start at any moment"
	}
	if last == nil {
		cause.Next = &Next{Wait: "it starts again", At: known(c.NextStart), Do: "read the log of its last run"}
		return cause
	}
	cause.Since = known(last.FinishedAt.Time)
	ended := Cause{Code: CodeExited, Container: c.spec.Name, Since: known(last.FinishedAt.Time), Text: "its last run ended" + at(f.Now, last.FinishedAt.Time) + " with " + ending(f, c.spec.Name, last)}
	ended.Next = adviceForEnd(f, c.spec.Name, last)
	ended.Next.Wait, ended.Next.At = "it starts again", known(c.NextStart)
	if k := killed(f, c); k != nil {
		k.Next.Wait, k.Next.At = "it starts again", known(c.NextStart)
		ended.Causes, ended.Next = []Cause{*k}, nil
	}
	cause.Causes = []Cause{ended}
	return cause
}

// initializing explains a container that waits for the init containers before it.
func initializing(f Facts, c container) Cause {
	inits, _ := f.containers()
	for i := range inits {
		if inits[i].spec.Name == c.spec.Name {
			inits = inits[:i]
			break
		}
	}
	cause := Cause{Code: CodeWaitingForInit, Text: "it waits for the init containers"}
	if why := initCause(f, inits); why != nil {
		cause.Causes = []Cause{*why}
	} else {
		cause.Next = wait("it starts, since all init containers before it are done")
	}
	return cause
}

// creating explains a container that is being made.
func creating(f Facts, c container) Cause {
	cause := Cause{Code: CodeContainerCreating, Text: "it is being created" + detail(c.status.State.Waiting.Message),
		Next: &Next{Wait: "it starts as soon as volumes, network and image are there"}}
	for _, w := range f.Warnings {
		if w.Container == c.spec.Name || w.Container == "" {
			cause.Causes = []Cause{{Code: CodeVolumesNotReady, Since: known(w.Last), Text: said(&w), Next: adviceForMissing(w.Message)}}
		}
	}
	if len(cause.Causes) > 0 {
		cause.Next = nil
	}
	return cause
}

// adviceForMissing is what to do about a config map, a secret or a key that is missing.
func adviceForMissing(message string) *Next {
	next := &Next{Do: "create what is missing, or mark the reference as optional", Wait: "the node tries again"}
	switch lower := strings.ToLower(message); {
	case strings.Contains(lower, "couldn't find key"):
		next.Do = "add the key, or mark the reference as optional"
	case strings.Contains(lower, "runasnonroot"):
		next.Do = "set runAsUser to a user other than root, or drop runAsNonRoot"
	case strings.Contains(lower, "not found"), strings.Contains(lower, "not registered"):
	case strings.Contains(lower, "forbidden"):
		next.Do = "allow the node to read it"
	default:
		next.Do = "read the message; it names what is wrong"
	}
	return next
}

func seconds(n, otherwise int32) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}

func counted(n int, one, many string) string { return fmt.Sprintf("%d %s", n, plural(n, one, many)) }
