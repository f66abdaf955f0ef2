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
	case strings.HasSuffix(r.do, "pull secrets"):
		cause.Next = adviceForImage(f.imageError(c, w.Message))
		if detail(w.Message) == "" || w.Reason == "ImagePullBackOff" {
			cause.Text = r.text + detail(f.imageError(c, w.Message))
		}
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
	if w, code := f.creationWarning(c); w != nil {
		next := adviceForMissing(w.Message)
		if code == CodeImage {
			next = adviceForImage(w.Message)
		}
		cause.Causes, cause.Next = []Cause{{Code: code, Since: known(w.Last), Text: said(w), Next: next}}, nil
	}
	return cause
}

// adviceForMissing is what to do about a config map, a secret or a key that is missing.
func adviceForMissing(message string) *Next {
	next := &Next{Do: "create what is missing, or mark the reference as optional", Wait: "the node tries again"}
	switch lower := strings.ToLower(message); {
	case strings.Contains(lower, "couldn't find key"), strings.Contains(lower, "non-existent"):
		next.Do = "add the key, or mark the reference as optional"
	case strings.Contains(lower, "runasnonroot"):
		next.Do = "set runAsUser to a user other than root, or drop runAsNonRoot"
	case strings.Contains(lower, "hostpath"):
		next.Do = "create the path on the node, or correct hostPath and its type"
	case strings.Contains(lower, "are supported"), strings.Contains(lower, "not supported"), strings.Contains(lower, "unsupported"), strings.Contains(lower, "cannot be honored"):
		next.Do = "change the field that the message names, or use another node"
	case strings.Contains(lower, "not found"), strings.Contains(lower, "not registered"):
	case strings.Contains(lower, "forbidden"):
		next.Do = "allow the node to read it"
	default:
		next.Do = "read the message; it names what is wrong"
	}
	return next
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

// adviceForImage is what to do about an image that cannot be pulled, by what the registry answered.
func adviceForImage(message string) *Next {
	next := &Next{Wait: "the node tries again", Do: "check the image's name, that the registry is reachable, and the pull secrets"}
	lower := strings.ToLower(message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(lower, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has(`must be "host"`):
		next.Do = "use image \"host\" with a command of the machine, or have the pod run on another node"
	case has("401", "403", "unauthorized", "forbidden", "denied", "authentication required", "no basic auth"):
		next.Do = "check imagePullSecrets and the rights of their user; a registry may answer so also if the image does not exist"
	case has("not found", "manifest unknown", "404", "does not exist"):
		next.Do = "correct the image's name or tag"
	case has("no match for platform", "no matching manifest"):
		next.Do = "use an image for the node's architecture"
	case has("x509", "certificate"):
		next.Do = "let the node trust the registry's certificate"
	case has("http: server gave http response"):
		next.Do = "serve the registry with TLS, or allow it as insecure on the node"
	case has("no such host", "server misbehaving"):
		next.Do = "correct the registry's name, or the node's DNS"
	case has("i/o timeout", "connection refused", "no route", "deadline exceeded", "network is unreachable"):
		next.Do = "check that the node reaches the registry"
	case has("no space left"):
		next.Do = "free disk space on the node"
	case has("toomanyrequests", "429", "rate limit"):
		next.Do = "log in to the registry, or use a mirror: its rate limit is reached"
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
