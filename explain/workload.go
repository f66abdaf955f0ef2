package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Workload is what is known of an object that makes pods: a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job.
type Workload struct {
	Now                   time.Time
	Kind, Namespace, Name string
	// Wanted is how many pods there should be, Ready how many of them are ready.
	Wanted, Ready int
	Suspended     bool
	// Paused: the rollout of a Deployment is paused.
	Paused bool
	// Schedule is that of a CronJob, LastJob the newest Job of it, nil if there is none.
	Schedule string
	LastJob  *Workload
	// Complete and Failed are the conditions of a Job that has ended; Failed is its reason and message.
	Complete bool
	Failed   string
	// Warnings are the warnings about the object, and about what makes pods for it, the newest last.
	Warnings []Warning
	// Pods are those of the object.
	Pods []Facts
}

// Causes of a workload that has fewer pods than it should.
const (
	CodeNoPods        Code = "NoPods"
	CodePodsNotMade   Code = "PodsNotCreated"
	CodePodsNotReady  Code = "PodsNotReady"
	CodeGivenUp       Code = "JobGivenUp"
	CodeSuspended     Code = "Suspended"
	CodeStalePodCount Code = "PodsNotCounted"
	CodeLastJob       Code = "LastJob"
)

// Explain explains why a workload does not have the pods that it should have, or why those are not Ready.
func (w Workload) Explain() Explanation {
	e := Explanation{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, State: StateNotReady, now: w.Now, several: true}
	on := "-n " + w.Namespace + " " + strings.ToLower(w.Kind) + "/" + w.Name
	switch {
	case w.Complete:
		e.State = StateSucceeded
		e.Causes = []Cause{{Code: CodeCompleted, Text: "as many pods as it asks for have succeeded", Next: wait("the object stays as a record until it is deleted")}}
	case w.Failed != "":
		e.State = StateFailed
		cause := Cause{Code: CodeGivenUp, Text: "it has given up" + detail(w.Failed), Next: &Next{Do: "correct what failed, and create it again", Command: "kubectl logs " + on}}
		if strings.HasPrefix(w.Failed, "DeadlineExceeded") {
			cause.Next.Do = "raise activeDeadlineSeconds of the Job, or make the work shorter, and create it again"
		}
		e.Causes = []Cause{w.withPod(cause, &e)}
		for i := range e.Causes {
			again(&e.Causes[i])
		}
	case w.Suspended:
		e.Causes = []Cause{{Code: CodeSuspended, Text: "it is suspended", Next: &Next{Do: "resume it", Command: "kubectl patch " + on + ` -p '{"spec":{"suspend":false}}'`}}}
	case w.Kind == "CronJob":
		w.ofLastJob(&e, on)
	case w.Paused && len(w.Pods) < w.Wanted:
		e.Causes = []Cause{{Code: CodeSuspended, Text: "its rollout is paused", Next: &Next{Do: "resume it", Command: "kubectl rollout resume " + on}}}
	case w.Wanted == 0 && w.Kind == "DaemonSet":
		e.Causes = []Cause{{Code: CodeNoPods, Text: "no node is one that its nodeSelector, affinity and tolerations ask for",
			Next: &Next{Do: "label a node, or correct nodeSelector, affinity and tolerations", Command: "kubectl get nodes --show-labels"}}}
	case w.Wanted == 0:
		e.Causes = []Cause{{Code: CodeNoPods, Text: "it asks for no pods", Next: &Next{Do: "scale it up", Command: "kubectl scale --replicas=1 " + on}}}
	case len(w.Pods) < w.Wanted && w.refusal() != nil:
		e.Causes = []Cause{w.notMade()}
		if w.Ready < len(w.Pods) {
			e.Causes = append(e.Causes, w.withPod(Cause{Code: CodePodsNotReady}, &e))
		}
	case len(w.Pods) == 0:
		e.Causes = []Cause{{Code: CodeNoPods, Text: fmt.Sprintf("it has none of its %s, and there is no warning about them", counted(w.Wanted, "pod", "pods")),
			Next: &Next{Wait: "its controller creates them", Do: "check that the controller manager runs", Command: "kubectl describe " + on}}}
	case w.Ready >= w.Wanted:
		e.State, e.Next = StateReady, wait("nothing is waited for")
	default:
		e.Causes = []Cause{w.withPod(Cause{Code: CodePodsNotReady}, &e)}
	}
	return e
}

// ofLastJob explains a CronJob by the newest Job that it has made.
func (w Workload) ofLastJob(e *Explanation, on string) {
	if w.LastJob == nil {
		e.Causes = []Cause{{Code: CodeNoPods, Text: "it has made no Job yet; its schedule is " + quote(shorten(w.Schedule)),
			Next: &Next{Wait: "the controller makes one at the next time of the schedule", Do: "check the schedule, and the events of the object", Command: "kubectl describe " + on}}}
		if refusal := w.refusal(); refusal != nil {
			e.Causes[0].Text += detail(refusal.Message)
		}
		return
	}
	last := w.LastJob.Explain()
	e.State, e.Logs, e.Next = last.State, last.Logs, last.Next
	e.Causes = last.Causes
	if len(last.Causes) > 0 {
		e.Causes = []Cause{{Code: CodeLastJob, Text: "its last Job is " + quote(w.LastJob.Name), Causes: last.Causes}}
	}
}

// again has a person create a Job again once what failed is corrected: no other pod comes by itself.
func again(c *Cause) {
	if len(c.Causes) == 0 && c.Next != nil {
		next := *c.Next
		next.Wait, next.At = "", nil
		if !strings.Contains(next.Do, "create it again") {
			next.Do = strings.TrimPrefix(next.Do+"; then delete the Job and create it again", "; ")
		}
		c.Next = &next
	}
	for i := range c.Causes {
		again(&c.Causes[i])
	}
}

// refusals are the reasons of warnings about pods that cannot be created.
var refusals = []string{"FailedCreate", "ReplicaSetCreateError", "ReplicaFailure", "FailedToCreatePod", "UnparseableSchedule", "UnknownTimeZone", "TooManyMissedTimes"}

func (w Workload) refusal() *Warning {
	for i := len(w.Warnings) - 1; i >= 0; i-- {
		if slices.Contains(refusals, w.Warnings[i].Reason) {
			return &w.Warnings[i]
		}
	}
	return nil
}

// notMade explains pods that the API server refuses to create.
func (w Workload) notMade() Cause {
	message := w.refusal().Message
	if _, after, ok := strings.Cut(message, "Error creating: "); ok {
		message = after
	}
	cause := Cause{Code: CodePodsNotMade, Since: known(w.refusal().Last), Text: fmt.Sprintf("%d of %s cannot be created", w.Wanted-len(w.Pods), counted(w.Wanted, "pod", "pods")) + detail(message),
		Next: &Next{Wait: "its controller tries again", Do: "correct what the message names", Command: "kubectl describe -n " + w.Namespace + " " + strings.ToLower(w.Kind) + "/" + w.Name}}
	switch lower := strings.ToLower(message); {
	case strings.Contains(lower, "exceeded quota"):
		cause.Next.Do, cause.Next.Command = "raise the quota, ask for less, or delete what is not needed", "kubectl describe resourcequota -n "+w.Namespace
	case strings.Contains(lower, "must specify"): // of a quota
		cause.Next.Do, cause.Next.Command = "set the requests and limits that the quota asks for", "kubectl describe resourcequota -n "+w.Namespace
	case strings.Contains(lower, "violates podsecurity"):
		cause.Next.Do, cause.Next.Command = "make the pod comply with the namespace's Pod Security level, or change the level", "kubectl get namespace "+w.Namespace+" --show-labels"
	case strings.Contains(lower, "runtimeclass"):
		cause.Next.Do, cause.Next.Command = "create the runtime class, or correct its name", "kubectl get runtimeclasses"
	case strings.Contains(lower, "serviceaccount"):
		cause.Next.Do, cause.Next.Command = "create the service account", "kubectl get serviceaccounts -n "+w.Namespace
	case strings.Contains(lower, "admission webhook"), strings.Contains(lower, "failed calling webhook"):
		cause.Next.Do, cause.Next.Command = "change what the webhook objects to; if the webhook does not answer, repair it", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
	case strings.Contains(lower, "validatingadmissionpolicy"):
		cause.Next.Do, cause.Next.Command = "change what the policy objects to", "kubectl get validatingadmissionpolicies"
	case strings.Contains(lower, "maximum"), strings.Contains(lower, "minimum"):
		cause.Next.Do, cause.Next.Command = "keep requests and limits within the namespace's LimitRange", "kubectl describe limitrange -n "+w.Namespace
	case strings.Contains(lower, "priorityclass"), strings.Contains(lower, "priority class"):
		cause.Next.Do, cause.Next.Command = "create the priority class, or correct its name", "kubectl get priorityclasses"
	}
	return cause
}

// withPod puts what keeps the pods of a workload behind a cause: what keeps most of them, with one as an example.
func (w Workload) withPod(cause Cause, e *Explanation) Cause {
	type group struct {
		brief string
		first Explanation
		count int
	}
	var groups []group
	unready := 0
	for _, f := range w.Pods {
		why := Pod(f)
		if why.State == StateReady || why.State == StateSucceeded {
			continue
		}
		unready++
		key := string(why.State)
		for _, root := range why.Roots() {
			key += " " + string(root.Code) + root.Container
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.brief == key })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{brief: key, first: why})
		}
		groups[i].count++
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.count, a.count) })
	if cause.Text == "" {
		cause.Text = fmt.Sprintf("%d of %s %s not Ready", unready, counted(max(w.Wanted, len(w.Pods)), "pod", "pods"), plural(unready, "is", "are"))
	}
	if len(groups) == 0 {
		cause.Next = cmp.Or(cause.Next, wait("the object counts its pods again"))
		if cause.Code == CodePodsNotReady {
			cause.Code = CodeStalePodCount
		}
		return cause
	}
	one := groups[0].first
	if w.Kind != "Pod" {
		cause.Text += ", as pod " + quote(one.Name)
	}
	cause.Causes, e.Logs = one.Causes, one.Logs
	if cause.Code != CodeGivenUp {
		cause.Next = nil
	}
	return cause
}
