package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/text"
)

// terminating: the pod is being deleted. What is left to do is explained in the order in
// which it happens: containers stop, resources are reclaimed, the node deletes the pod,
// finalizers go.
func terminating(e *Explanation, f Facts) {
	notGone(e, f)
	if who := f.disrupted(); who != nil {
		if f.Now.After(f.Pod.DeletionTimestamp.Time) { // what keeps it matters more than who asked
			e.Causes = append(e.Causes, *who)
			return
		}
		e.Causes = append([]Cause{*who}, e.Causes...)
	}
}

// notGone explains what keeps a pod that is being deleted.
func notGone(e *Explanation, f Facts) {
	e.State = StateTerminating
	deadline := f.Pod.DeletionTimestamp.Time // the request and the grace period
	if grace := f.Pod.DeletionGracePeriodSeconds; grace != nil {
		e.Since = known(deadline.Add(-time.Duration(*grace) * time.Second))
	}
	if f.Pod.Spec.NodeName == "" {
		e.Causes = finalizers(f)
		if len(e.Causes) == 0 {
			e.Causes = []Cause{{Code: CodeDeletionNotSent, Text: "the API server has not removed it yet", Next: wait("it is removed at once, since no node has it")}}
		}
		return
	}
	inits, regular := f.containers()
	for _, c := range append(sidecarsAndRunning(inits), regular...) {
		if cause := notStopped(f, c, deadline); cause != nil {
			e.Causes = append(e.Causes, *cause)
		}
	}
	if len(e.Causes) > 0 {
		return
	}
	switch d := f.Delivery; {
	case d != nil && d.Held != "":
		e.Causes = []Cause{{Code: CodeCleaningUp, Since: known(d.Since), Text: "all containers have stopped, and " + d.Held,
			Next: waitUntil("the node looks again", d.NextTry)}}
	case d != nil && d.Attempts > 0:
		e.Causes = []Cause{{Code: CodeDeletionNotSent, Since: known(d.Since),
			Text: "all containers have stopped, and the node cannot tell the API server: " + counted(d.Attempts, "try", "tries") + " failed with " + quote(shorten(d.Error)),
			Next: &Next{Wait: "the node tries again", At: known(d.NextTry), Do: adviceForError(d.Error)}}}
	default:
		e.Causes = finalizers(f)
	}
	if len(e.Causes) == 0 {
		cause := Cause{Code: CodeDeletionNotSent, Text: "all containers have stopped, and the pod has not been removed from the API yet",
			Next: &Next{Wait: "the node deletes it", Do: nodeAdvice(f)}}
		if w := f.warning("", "FailedKillPod"); w != nil && !w.Last.Before(deadline.Add(-f.grace())) {
			cause.Text, cause.Next.Do = "the node cannot clean up after it"+detail(w.Message), adviceForSandbox(w.Message).Do
			cause.Next.Command = "kubectl describe node " + f.Pod.Spec.NodeName
		}
		e.Causes = []Cause{cause}
	}
}

func nodeAdvice(f Facts) string {
	if !f.Node.Silent.IsZero() {
		return "check the node; if its machine is gone for good, delete the pod with --force"
	}
	return ""
}

// notStopped explains a container that has not stopped, nil if it has.
func notStopped(f Facts, c container, deadline time.Time) *Cause {
	if c.status == nil || c.status.State.Terminated != nil || (c.status.State.Running == nil && c.status.ContainerID == "") {
		return nil // it has ended, or never ran
	}
	if !c.KillAt.IsZero() {
		deadline = c.KillAt
	}
	cause := &Cause{Code: CodeNotStopped, Container: c.spec.Name, Text: "container " + quote(c.spec.Name) + " has not stopped"}
	left := deadline.Sub(f.Now)
	switch {
	case c.Hook == "preStop" && left > 0:
		cause.Causes = []Cause{{Code: CodePreStopRunning, Container: c.spec.Name, Since: known(c.HookSince),
			Text: fmt.Sprintf("its preStop hook has been running%s, %s of its grace are left", since(f.Now, c.HookSince), text.Span(left)),
			Next: &Next{Wait: "it is asked to stop when the hook ends, and is killed when its grace is over", At: known(deadline), Do: "if the hook hangs, correct it; until then it uses up the grace"}}}
	case left > 0 && c.KillAt.IsZero() && c.spec.Lifecycle != nil && c.spec.Lifecycle.PreStop != nil:
		cause.Causes = []Cause{{Code: CodeStillRunning, Container: c.spec.Name,
			Text: fmt.Sprintf("its preStop hook runs, or it was asked to stop and goes on; %s of its grace are left", text.Span(left)),
			Next: &Next{Wait: "it ends by itself, or is killed", At: known(deadline), Do: "if the hook hangs, correct it; have the program end on SIGTERM"}}}
	case left > 0:
		cause.Causes = []Cause{{Code: CodeStillRunning, Container: c.spec.Name,
			Text: fmt.Sprintf("it was asked to stop, %s of its grace are left", text.Span(left)),
			Next: &Next{Wait: "it ends by itself, or is killed", At: known(deadline), Do: "have the program end on SIGTERM, or lower terminationGracePeriodSeconds"}}}
	case left > -10*time.Second:
		cause.Causes = []Cause{{Code: CodeStillRunning, Container: c.spec.Name, Text: "its grace is over and it is being killed",
			Next: wait("the kernel ends it")}}
	default:
		cause.Causes = []Cause{doesNotDie(f, c, -left)}
	}
	return cause
}

// doesNotDie explains a container that is there long after its grace.
func doesNotDie(f Facts, c container, over time.Duration) Cause {
	if !f.Node.Silent.IsZero() {
		return nodeUnreachable(f)
	}
	cause := Cause{Code: CodeDoesNotDie, Container: c.spec.Name, Text: "its grace has been over for " + text.Span(over) + " and it has not been reported as ended",
		Next: do("look for a process in state D (waiting for a disk or a network file system) and at the node's log")}
	if w := f.warning("", "FailedKillPod"); w != nil {
		cause.Text += ": " + said(w)
	}
	return cause
}

// finalizers explains a pod that only its finalizers keep.
func finalizers(f Facts) []Cause {
	names := f.Pod.Finalizers
	if len(names) == 0 {
		return nil
	}
	return []Cause{{Code: CodeFinalizers, Text: fmt.Sprintf("%s %s %s it", plural(len(names), "finalizer", "finalizers"), quoteAll(names), plural(len(names), "keeps", "keep")),
		Next: &Next{Wait: "the controller that owns " + plural(len(names), "it", "them") + " does its work and removes " + plural(len(names), "it", "them"), Do: ownerOf(names)}}}
}

// ownerOf is what to check about finalizers, by who is known to own them.
func ownerOf(names []string) string {
	for _, name := range names {
		if strings.HasPrefix(name, "batch.kubernetes.io/") || name == "foregroundDeletion" || name == "orphan" {
			return "check that the controller manager runs: it removes " + quote(name)
		}
	}
	return "check that controller"
}

// sidecarsAndRunning returns the running init containers, which can keep a pod from ending.
func sidecarsAndRunning(inits []container) []container {
	var list []container
	for _, c := range inits {
		if c.sidecar || c.status != nil && c.status.State.Running != nil {
			list = append(list, c)
		}
	}
	return list
}

// delivery explains what keeps the API server from knowing the newest status, nil if
// nothing does or nothing is known.
func delivery(f Facts) *Cause {
	d := f.Delivery
	if d == nil {
		return nil
	}
	behind := d.Version > d.Accepted
	cause := Cause{Since: known(d.Since)}
	switch {
	case d.Writer != "" && d.Rounds > 0:
		cause.Code = CodeOtherWriter
		cause.Text = fmt.Sprintf("another writer, %s, changes the status back, %s so far", quote(d.Writer), times(d.Rounds))
		cause.Next = &Next{Do: "find out why " + quote(d.Writer) + " writes the status of pods on this node, and stop it", Wait: "the node writes again", At: known(d.NextTry)}
	case len(d.Refused) > 0:
		cause.Code = CodeRefused
		cause.Text = "the API server refuses " + strings.Join(d.Refused, ", ") + detail(d.Error) + "; it has the rest of the status"
		cause.Next = &Next{Do: "correct what the node reports in these fields", Wait: "the node tries them again", At: known(d.NextTry)}
	case !behind:
		return nil
	case d.Held != "" && d.Attempts == 0 || d.Held != "" && d.Error == "":
		cause.Code = CodeHeld
		cause.Text = "the API server does not know the newest status yet, because " + d.Held
		cause.Next = &Next{Wait: "it is sent when that has changed", At: known(d.NextTry)}
	case d.Attempts > 0:
		cause.Code = CodeRetrying
		cause.Text = fmt.Sprintf("the API server does not know the newest status yet, because %s failed with %s", counted(d.Attempts, "try", "tries"), quote(shorten(d.Error)))
		cause.Next = &Next{Do: adviceForError(d.Error), Wait: "the node tries again", At: known(d.NextTry)}
	case !f.Node.Unreachable.IsZero():
		cause.Code = CodeOffline
		cause.Text = "the API server does not know the newest status yet, because it has not been reached" + since(f.Now, f.Node.Unreachable)
		cause.Next = &Next{Do: "check the API server and the network to it", Wait: "the status is sent when it answers"}
	case f.Now.Sub(d.Since) < sendingIsNews:
		return nil
	default:
		cause.Code = CodeSending
		cause.Text = "the newest status has been on its way to the API server" + since(f.Now, d.Since)
		cause.Next = wait("the API server answers")
	}
	return &cause
}

// sendingIsNews is how long a change may be on its way before that is worth a word.
const sendingIsNews = 5 * time.Second

// adviceForError is what to do about an error of the API server.
func adviceForError(err string) string {
	switch lower := strings.ToLower(err); {
	case strings.Contains(lower, "forbidden"), strings.Contains(lower, "403"):
		return "check the rights of the node's user"
	case strings.Contains(lower, "unauthorized"), strings.Contains(lower, "401"), strings.Contains(lower, "x509"):
		return "check the node's credentials"
	case strings.Contains(lower, "webhook"):
		return "check the admission webhook that is named"
	case strings.Contains(lower, "too many requests"), strings.Contains(lower, "429"):
		return ""
	default:
		return "check the API server and the network to it"
	}
}
