package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// Workload has the known facts about an object that creates pods: a Deployment, ReplicaSet, StatefulSet, DaemonSet
// or Job.
type Workload struct {
	Now, Created          time.Time
	Kind, Namespace, Name string
	// Wanted is how many pods there should be, Ready how many of them are ready.
	Wanted, Ready int
	Suspended     bool
	// Paused: the rollout of a Deployment is paused.
	Paused bool
	// Served is how many pods of an older version are Ready while a Deployment rolls out a new version; New are the pods of the
	// new version, whose target number is Wanted. Neither is set if there is only one version.
	Served int
	New    []Facts
	// Rolling: a new version is being rolled out.
	Rolling bool
	// Schedule is the schedule of a CronJob, LastJob its newest Job, or nil.
	Schedule string
	LastJob  *Workload
	// Deleted is the deletion timestamp of the object, or zero; Finalizers block its deletion.
	Deleted    time.Time
	Finalizers []string
	// Revision is the newest revision of a StatefulSet, the value of the label controller-revision-hash of
	// its pods.
	Revision string
	// Complete and Failed are the conditions of a Job that has ended; Failed is its reason and message.
	Complete bool
	Failed   string
	// Warnings are the warnings about the object, and about the objects that create its pods, the
	// newest last.
	Warnings []Warning
	// Pods are the pods of the object.
	Pods []Facts
}

// Causes of a workload with too few pods.
const (
	CodeNoPods        Code = "NoPods"
	CodePodsNotMade   Code = "PodsNotCreated"
	CodePodsNotReady  Code = "PodsNotReady"
	CodeGivenUp       Code = "JobGivenUp"
	CodeSuspended     Code = "Suspended"
	CodeStalePodCount Code = "PodsNotCounted"
	CodeLastJob       Code = "LastJob"
)

// Explain explains why a workload has too few pods, or why its pods are not Ready.
func (w Workload) Explain() Explanation {
	e := Explanation{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, State: StateNotReady, now: w.Now, several: true}
	on := "-n " + w.Namespace + " " + strings.ToLower(w.Kind) + "/" + w.Name
	switch {
	case !w.Deleted.IsZero():
		e.State, e.Since = StateTerminating, known(w.Deleted)
		cause := Cause{Code: CodeDeletionNotSent, Text: "it is being deleted", Next: &Next{Wait: "it is removed when its pods are gone", Command: "kubectl get pods -n " + w.Namespace}}
		if len(w.Finalizers) > 0 {
			cause.Code, cause.Text = CodeFinalizers, "it is being deleted, and "+plural(len(w.Finalizers), "finalizer ", "finalizers ")+quoteAll(w.Finalizers)+plural(len(w.Finalizers), " keeps it", " keep it")
			cause.Next = &Next{Wait: "the controller that owns it does its work and removes it", Do: ownerOf(w.Finalizers), Command: "kubectl get " + on + " -o jsonpath='{.metadata.finalizers}'"}
		}
		e.Causes = []Cause{cause}
	case w.Complete:
		e.State = StateSucceeded
		e.Causes = []Cause{{Code: CodeCompleted, Text: "as many pods as it asks for have succeeded", Next: wait("the object stays as a record until it is deleted")}}
	case w.Failed != "":
		e.State = StateFailed
		cause := Cause{Code: CodeGivenUp, Text: "it has given up" + detail(w.Failed), Next: &Next{Do: "correct what failed, and create it again", Command: "kubectl logs " + on}}
		if len(w.Pods) == 0 {
			cause.Next.Command = "kubectl describe " + on
			if strings.HasPrefix(w.Failed, "BackoffLimitExceeded") {
				cause.Next.Do = "its pods are gone with their logs: set restartPolicy Never, which keeps them, and create it again"
			}
		}
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
	case w.Rolling && !w.Paused && w.Ready >= w.Wanted && w.Wanted > 0:
		e.Causes = []Cause{w.notRolledOut(&e)}
	case w.Paused && len(w.live()) < w.Wanted:
		e.Causes = []Cause{{Code: CodeSuspended, Text: "its rollout is paused", Next: &Next{Do: "resume it", Command: "kubectl rollout resume " + on}}}
	case w.Wanted == 0 && w.Kind == "DaemonSet":
		e.Causes = []Cause{{Code: CodeNoPods, Text: "no node matches its nodeSelector, affinity and tolerations",
			Next: &Next{Do: "label a node, or correct nodeSelector, affinity and tolerations", Command: "kubectl get nodes --show-labels"}}}
	case w.Wanted == 0 && w.Kind == "Job":
		e.Causes = []Cause{{Code: CodeNoPods, Text: "its parallelism is 0", Next: &Next{Do: "set parallelism to how many pods may work at a time", Command: "kubectl patch " + on + ` -p '{"spec":{"parallelism":1}}'`}}}
	case w.Wanted == 0:
		e.Causes = []Cause{{Code: CodeNoPods, Text: "it asks for no pods", Next: &Next{Do: "scale it up", Command: "kubectl scale --replicas=1 " + on}}}
	case len(w.live()) < w.Wanted && w.refusal() != nil:
		e.Causes = []Cause{w.notMade()}
		if w.Ready < len(w.live()) {
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

// live returns the pods that count: all pods of a Job, and of other workloads the pods that have not ended and are not being
// deleted.
func (w Workload) live() []Facts {
	if w.Kind == "Job" {
		return w.Pods
	}
	return slices.DeleteFunc(slices.Clone(w.Pods), func(f Facts) bool { return f.Pod.DeletionTimestamp != nil || podstatus.IsTerminal(f.status().Phase) })
}

// notRolledOut explains a Deployment whose new version is not there yet, while the old one serves.
func (w Workload) notRolledOut(e *Explanation) Cause {
	fresh := w
	fresh.Pods = w.New
	serves := " (the old one still serves with " + counted(w.Served, "pod", "pods") + ")"
	if refusal := w.refusal(); refusal != nil && len(fresh.live()) < w.Wanted {
		cause := fresh.notMade()
		cause.Text = "its new version is not rolled out" + serves + ": " + cause.Text
		return cause
	}
	cause := fresh.withPod(Cause{Code: CodePodsNotReady, Text: "its new version is not rolled out" + serves}, e)
	if len(cause.Causes) == 0 {
		cause.Next = &Next{Wait: "the Deployment replaces one pod after the other", Do: "if it does not go on, read its conditions", Command: "kubectl rollout status -n " + w.Namespace + " deployment/" + w.Name}
	}
	return cause
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
	if refusal := w.refusal(); refusal != nil && refusal.Last.After(w.LastJob.Created) {
		e.Causes = []Cause{{Code: CodeNoPods, Since: known(refusal.Last), Text: "it makes no other Job" + detail(refusal.Message),
			Next: &Next{Do: adviceForSchedule(refusal.Reason), Command: "kubectl describe " + on}}}
		if refusal.Reason == waitsForLast {
			e.Causes[0].Text = "its last Job " + quote(w.LastJob.Name) + " has been running" + since(w.Now, w.LastJob.Created) + ", and concurrencyPolicy Forbid allows no other beside it"
			e.Causes[0].Next = &Next{Wait: "the next Job starts when that one has ended", Do: "if the Job hangs, delete it and give it an activeDeadlineSeconds, or change concurrencyPolicy", Command: "kubectl logs -n " + w.Namespace + " job/" + w.LastJob.Name}
		}
		return
	}
	last := w.LastJob.Explain()
	e.State, e.Logs, e.Next = last.State, last.Logs, last.Next
	e.Causes = last.Causes
	if len(last.Causes) > 0 {
		e.Causes = []Cause{{Code: CodeLastJob, Text: "its last Job is " + quote(w.LastJob.Name), Causes: last.Causes}}
	}
	if last.State == StateFailed {
		bySchedule(e.Causes, "the next Job starts at the next time of the schedule, "+quote(shorten(w.Schedule))+"; kubectl create job -n "+w.Namespace+" --from=cronjob/"+w.Name+" "+w.Name+"-again starts one now")
	}
}

// bySchedule says of what is to be created again that the CronJob does so.
func bySchedule(causes []Cause, next string) {
	for i := range causes {
		c := &causes[i]
		if len(c.Causes) == 0 && c.Next != nil {
			changed := *c.Next
			changed.Do = strings.NewReplacer(thenAgain, "", ", and create it again", "").Replace(changed.Do)
			changed.Wait = next
			c.Next = &changed
		}
		bySchedule(c.Causes, next)
	}
}

// thenAgain is what to do about a Job once what failed is corrected.
const thenAgain = "; then delete the Job and create it again"

// replaceByHand has a person delete a pod of an old revision: a StatefulSet waits until it is Ready before it replaces it.
func replaceByHand(c *Cause) {
	if len(c.Causes) == 0 && c.Next != nil {
		next := *c.Next
		next.Do = strings.TrimPrefix(next.Do+"; the StatefulSet has a newer revision: delete the pod to have it, since pods that are not Ready are not replaced", "; ")
		c.Next = &next
	}
	for i := range c.Causes {
		replaceByHand(&c.Causes[i])
	}
}

// again has a person create a Job again once what failed is corrected: no other pod comes by itself.
func again(c *Cause) {
	if len(c.Causes) == 0 && c.Next != nil {
		next := *c.Next
		next.Wait, next.At = "", nil
		if !strings.Contains(next.Do, "create it again") {
			next.Do = strings.TrimPrefix(next.Do+thenAgain, "; ")
		}
		c.Next = &next
	}
	for i := range c.Causes {
		again(&c.Causes[i])
	}
}

// waitsForLast is the reason of the event of a CronJob that waits for its last Job. It is no warning.
const waitsForLast = "JobAlreadyActive"

// adviceForSchedule is what to do about a CronJob that makes no Job.
func adviceForSchedule(reason string) string {
	switch reason {
	case "TooManyMissedTimes":
		return "set startingDeadlineSeconds to some minutes, so that only recent start times count"
	case "UnknownTimeZone":
		return "correct timeZone of the CronJob"
	case "UnparseableSchedule", "InvalidSchedule":
		return "correct the schedule of the CronJob"
	}
	return "correct what the message names"
}

// refusals are the reasons of warnings about pods that cannot be created.
var refusals = []string{"FailedCreate", "ReplicaSetCreateError", "ReplicaFailure", "FailedToCreatePod", "UnparseableSchedule", "InvalidSchedule", "UnknownTimeZone", "TooManyMissedTimes", waitsForLast}

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
	cause := Cause{Code: CodePodsNotMade, Since: known(w.refusal().Last), Text: fmt.Sprintf("%d of %s cannot be created", w.Wanted-len(w.live()), counted(w.Wanted, "pod", "pods")) + detail(message),
		Next: &Next{Wait: "its controller tries again", Do: "correct what the message names", Command: "kubectl describe -n " + w.Namespace + " " + strings.ToLower(w.Kind) + "/" + w.Name}}
	switch lower := strings.ToLower(message); {
	case strings.Contains(lower, "because it is being terminated"):
		cause.Next = &Next{Do: "use another namespace, or create it again when the namespace is gone", Command: "kubectl describe namespace " + w.Namespace}
	case strings.Contains(lower, "must be less than or equal to"): // of a request and its limit
		cause.Next.Do, cause.Next.Command = "ask for less, or set a limit: without one the default of the namespace's LimitRange counts", "kubectl describe limitrange -n "+w.Namespace
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
		pod   *v1.Pod
		count int
	}
	var groups []group
	unready := 0
	pods := w.live()
	if len(pods) == 0 {
		pods = w.Pods
	}
	for _, f := range pods {
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
			groups = append(groups, group{brief: key, first: why, pod: f.Pod})
		}
		groups[i].count++
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.count, a.count) })
	if cause.Text == "" {
		cause.Text = fmt.Sprintf("%d of %s %s not Ready", unready, counted(max(w.Wanted, len(pods)), "pod", "pods"), plural(unready, "is", "are"))
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
	if hash := groups[0].pod.Labels[appsv1.ControllerRevisionHashLabelKey]; w.Revision != "" && hash != "" && hash != w.Revision && one.State != StateTerminating {
		replaceByHand(&cause)
	}
	if cause.Code != CodeGivenUp {
		cause.Next = nil
	}
	return cause
}
