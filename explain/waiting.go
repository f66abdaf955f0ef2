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
	switch {
	case r.code == CodeConfig:
		cause.Next = adviceForMissing(w.Message)
	case r.code == CodeCreateFailed, r.code == CodeStartFailed:
		cause.Next = adviceForCreation(c, w.Message, r.do)
	case strings.HasSuffix(r.do, "pull secrets"):
		cause.Text, cause.Next = f.notPulled(c, r.text, w.Message)
	}
	if c.NextStart.After(f.Now) {
		cause.Next.At = known(c.NextStart)
	}
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
	hung := &Next{Wait: "the container counts as started when the hook ends", Do: "if the hook hangs, correct its command or URL"}
	switch hook := c.spec.Lifecycle; {
	case c.Hook == "postStart":
		return Cause{Code: CodePostStartRunning, Since: known(c.HookSince), Text: "its postStart hook has been running" + since(f.Now, c.HookSince), Next: hung}
	case hook != nil && hook.PostStart != nil: // a kubelet reports the container as running when the hook has ended
		cause.Text, cause.Next = "it is being created, or its postStart hook has not ended"+detail(c.status.State.Waiting.Message), hung
	}
	switch w, code := f.creationWarning(c); {
	case w != nil:
		next := adviceForMissing(w.Message)
		switch code {
		case CodeImage:
			next = adviceForImage(w.Message)
		case CodeCreateFailed:
			next = adviceForSandbox(w.Message)
		}
		cause.Causes, cause.Next = []Cause{{Code: code, Since: known(w.Last), Text: said(w), Next: next}}, nil
	case !c.Pulling.IsZero():
		cause.Text, cause.Since = "its image "+quote(c.spec.Image)+" is being pulled"+begun(f.Now, c.Pulling), known(c.Pulling)
		cause.Next = wait("it starts when its image is there")
	case f.Node.NotReady != "":
		cause.Causes, cause.Next = []Cause{nodeNotReady(f)}, nil
	}
	return cause
}

// notPulled says why an image cannot be pulled, and what to do about it.
func (f Facts) notPulled(c container, what, message string) (string, *Next) {
	why := f.imageError(c, message)
	if _, after, ok := strings.Cut(why, ": ErrImagePull: "); ok { // what comes before repeats the image
		why = after
	}
	next := adviceForImage(why)
	if secret := f.pullSecretMissing(); secret != "" && refusedByRegistry(strings.ToLower(why)) {
		next.Do, next.Command = "create the secret, or correct its name in imagePullSecrets", "kubectl get secret -n "+f.Pod.Namespace+" "+secret
		return "its image cannot be pulled, because pull secret " + quote(secret) + " cannot be read" + detail(why), next
	}
	return what + detail(why), next
}

// pullSecretMissing returns the first pull secret that the node could not read, or empty.
func (f Facts) pullSecretMissing() string {
	w := f.warning("", "FailedToRetrieveImagePullSecret")
	if w == nil {
		return ""
	}
	_, names, _ := strings.Cut(w.Message, "(")
	names, _, _ = strings.Cut(names, ")")
	for _, secret := range f.Pod.Spec.ImagePullSecrets {
		for name := range strings.SplitSeq(names, ", ") {
			if name == secret.Name {
				return name
			}
		}
	}
	return ""
}

// imageError is why an image cannot be pulled: while the node waits for its next try, only a warning says so.
func (f Facts) imageError(c container, message string) string {
	if !strings.HasPrefix(message, "Back-off pulling image") || strings.Contains(message, ": ErrImagePull: ") {
		return message
	}
	if w, code := f.creationWarning(c); code == CodeImage && !strings.HasPrefix(w.Message, "Back-off") && !strings.HasPrefix(w.Message, "Error: ") {
		return w.Message
	}
	return message
}

func seconds(n, otherwise int32) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}

func counted(n int, one, many string) string { return fmt.Sprintf("%d %s", n, plural(n, one, many)) }
