package expr

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/view"
)

// vocabulary has the types that expressions can use, by name. They are made of what the query API
// answers, with its names.
var vocabulary = map[string]*objectType{}

// The types, in the order in which they are documented. Types that refer to others come after them.
var (
	probeType      = register(newType("Probe", "What the probes of one kind have found in the current run of a container.", probeFields...))
	differenceType = register(newType("Difference", "One way in which what the API reports is not true, as `statusd audit` shows it.", differenceFields...))
	conditionType  = register(newType("Condition", "A condition of a pod or of the node.", conditionFields...))
	deliveryType   = register(newType("Delivery", "How far the API server knows the status of a pod.", deliveryFields...))
	containerType  = register(newType("Container", "A container of a pod.", containerFields...))
	podType        = register(newType("Pod", "A pod of this node.", podFields...))
	reasonType     = register(newType("Reason", "One thing that is wrong with the kubelet, as `statusd guard` shows it.", reasonFields...))
	kubeletType    = register(newType("Kubelet", "The kubelet of this node, as the guard sees it. Without a guard all of it is unknown.", kubeletFields...))
	countsType     = register(newType("Counts", "The pods of the node by state.", countFields...))
	nodeType       = register(newType("Node", "This node.", nodeFields...))
	changeType     = register(newType("Change", "The record of the history that caused the evaluation.", changeFields...))
)

func register(t *objectType) *objectType {
	vocabulary[t.name] = t
	return t
}

func listOf(name string) *cel.Type { return cel.ListType(cel.ObjectType(name)) }

func on[T any](get func(T) any) func(*object) any {
	return func(o *object) any { return get(o.v.(T)) }
}

var probeFields = []field{
	{"kind", "startup, readiness or liveness", cel.StringType, on(func(p *view.ProbeDetail) any { return text(string(p.Kind)) })},
	{"ok", "the last result; unknown before the first", cel.BoolType, on(func(p *view.ProbeDetail) any {
		if p.OK == nil {
			return nil
		}
		return types.Bool(*p.OK)
	})},
	{"failures", "how many of the last results in a row are failures", cel.IntType, on(func(p *view.ProbeDetail) any { return types.Int(p.Failures) })},
	{"successes", "how many of the last results in a row are successes", cel.IntType, on(func(p *view.ProbeDetail) any { return types.Int(p.Successes) })},
	{"answer", "the last answer, such as `connection refused`", cel.StringType, on(func(p *view.ProbeDetail) any { return text(p.Answer) })},
	{"at", "when the last answer was given", cel.TimestampType, on(func(p *view.ProbeDetail) any { return stamp(p.At) })},
}

var differenceFields = []field{
	{"kind", "one of " + strings.Join(words(audit.Kinds()...), ", "), cel.StringType, on(func(d *audit.Difference) any { return text(string(d.Kind)) })},
	{"namespace", "the namespace of the pod", cel.StringType, on(func(d *audit.Difference) any { return text(d.Pod.Namespace) })},
	{"pod", "the name of the pod; empty: the node", cel.StringType, on(func(d *audit.Difference) any { return text(d.Pod.Name) })},
	{"container", "the name of the container, if it is about one", cel.StringType, on(func(d *audit.Difference) any { return text(d.Container) })},
	{"subject", "what it is about within its kind", cel.StringType, on(func(d *audit.Difference) any { return text(d.Subject) })},
	{"message", "what is not true, as a sentence", cel.StringType, on(func(d *audit.Difference) any { return text(d.Message) })},
	{"since", "when it became untrue", cel.TimestampType, on(func(d *audit.Difference) any { return stamp(d.Since) })},
	{"seen", "when it was first noticed", cel.TimestampType, on(func(d *audit.Difference) any { return stamp(d.Seen) })},
	{"drift", "it has lasted longer than news takes", cel.BoolType, on(func(d *audit.Difference) any { return types.Bool(d.Drift) })},
	{"certainty", "certain, likely or possible", cel.StringType, on(func(d *audit.Difference) any { return text(string(d.Certainty)) })},
	{"writer", "the other writer, by its name in managedFields", cel.StringType, on(func(d *audit.Difference) any { return text(d.Writer) })},
	{"holds", "what holds a pod that is being deleted", cel.ListType(cel.StringType), on(func(d *audit.Difference) any { return texts(d.Holds) })},
	{"do", "what to do about it", cel.StringType, on(func(d *audit.Difference) any { return text(d.Do) })},
}

var conditionFields = []field{
	{"type", "the type, such as `Ready`", cel.StringType, on(func(c *condition) any { return text(c.kind) })},
	{"status", "`True`, `False` or `Unknown`", cel.StringType, on(func(c *condition) any { return text(c.status) })},
	{"reason", "a word in CamelCase", cel.StringType, on(func(c *condition) any { return text(c.reason) })},
	{"message", "the cause in words", cel.StringType, on(func(c *condition) any { return text(c.message) })},
	{"since", "when the status last changed", cel.TimestampType, on(func(c *condition) any { return stamp(c.since) })},
}

var deliveryFields = []field{
	{"version", "the newest change of the status", cel.IntType, on(func(f *view.Freshness) any { return types.Int(f.Version) })},
	{"accepted", "the newest change that the API server took", cel.IntType, on(func(f *view.Freshness) any { return types.Int(f.Accepted) })},
	{"acceptedAt", "when it took it", cel.TimestampType, on(func(f *view.Freshness) any { return stamp(f.AcceptedAt) })},
	{"since", "when the first change was made that the API server does not know; unknown if it knows all", cel.TimestampType, on(func(f *view.Freshness) any { return stamp(f.Since) })},
	{"attempts", "how many tries had no success", cel.IntType, on(func(f *view.Freshness) any { return types.Int(f.Attempts) })},
	{"error", "the last error", cel.StringType, on(func(f *view.Freshness) any { return text(f.Error) })},
	{"held", "what the change waits for on this node", cel.StringType, on(func(f *view.Freshness) any { return text(f.Held) })},
	{"refused", "the fields that the API server refuses", cel.ListType(cel.StringType), on(func(f *view.Freshness) any { return texts(f.Refused) })},
	{"writer", "another writer that changes the status back", cel.StringType, on(func(f *view.Freshness) any { return text(f.Writer) })},
	{"rounds", "how often it has", cel.IntType, on(func(f *view.Freshness) any { return types.Int(f.Rounds) })},
}

var containerFields = []field{
	{"name", "the name of the container", cel.StringType, on(func(c *containerFacts) any { return text(c.Name) })},
	{"kind", "init, sidecar or main", cel.StringType, on(func(c *containerFacts) any { return text(string(c.Kind)) })},
	{"image", "its image", cel.StringType, on(func(c *containerFacts) any { return text(c.Image) })},
	{"state", "waiting, running or terminated", cel.StringType, on(func(c *containerFacts) any { return text(string(c.State)) })},
	{"reason", "why it waits or has ended, such as `CrashLoopBackOff`, `OOMKilled`", cel.StringType, on(func(c *containerFacts) any { return text(c.Reason) })},
	{"message", "the cause in words", cel.StringType, on(func(c *containerFacts) any { return text(c.Message) })},
	{"since", "when it started or ended; unknown while it waits", cel.TimestampType, on(func(c *containerFacts) any { return instant(c.Since) })},
	{"ready", "it serves", cel.BoolType, on(func(c *containerFacts) any { return types.Bool(c.Ready) })},
	{"started", "its startup probe has passed, or no startup probe is set", cel.BoolType, on(func(c *containerFacts) any { return types.Bool(c.Started) })},
	{"restarts", "how often it was restarted", cel.IntType, on(func(c *containerFacts) any { return types.Int(c.Restarts) })},
	{"exitCode", "the exit code of the last run that has ended", cel.IntType, on(func(c *containerFacts) any {
		if c.ExitCode == nil {
			return nil
		}
		return types.Int(*c.ExitCode)
	})},
	{"lastReason", "why the last run ended, such as `OOMKilled`, `Error`, `Completed`", cel.StringType, on(func(c *containerFacts) any { return given(c.lastReason) })},
	{"lastEnd", "when the last run ended", cel.TimestampType, on(func(c *containerFacts) any { return stamp(c.lastEnd) })},
	{"nextStart", "when it is started again at the earliest", cel.TimestampType, on(func(c *containerFacts) any { return instant(c.NextStart) })},
	{"probes", "its probes", listOf("Probe"), func(o *object) any { return list(o, probeType, o.v.(*containerFacts).Probes) }},
}

var podFields = []field{
	{"namespace", "the namespace", cel.StringType, on(func(p *podFacts) any { return text(p.Namespace) })},
	{"name", "the name", cel.StringType, on(func(p *podFacts) any { return text(p.Name) })},
	{"uid", "the UID", cel.StringType, on(func(p *podFacts) any { return text(string(p.UID)) })},
	{"static", "it comes from a manifest on the node", cel.BoolType, on(func(p *podFacts) any { return types.Bool(p.Static) })},
	{"created", "when it was created", cel.TimestampType, on(func(p *podFacts) any { return instant(p.Created) })},
	{"phase", "Pending, Running, Succeeded, Failed or Unknown", cel.StringType, on(func(p *podFacts) any { return text(string(p.Phase)) })},
	{"state", "Unscheduled, Starting, Initializing, Ready, NotReady, Terminating, Succeeded, Failed, Rejected, Evicted or Unknown", cel.StringType, on(func(p *podFacts) any { return text(string(p.State)) })},
	{"since", "when it came into the state", cel.TimestampType, on(func(p *podFacts) any { return instant(p.Since) })},
	{"status", "what kubectl shows in its column STATUS", cel.StringType, on(func(p *podFacts) any { return text(p.Status) })},
	{"reason", "the reason of the status, such as `Evicted`, `DeadlineExceeded`", cel.StringType, on(func(p *podFacts) any { return text(p.reason) })},
	{"ready", "how many containers are ready", cel.IntType, on(func(p *podFacts) any { return types.Int(p.Ready) })},
	{"containers", "how many containers count", cel.IntType, on(func(p *podFacts) any { return types.Int(p.Containers) })},
	{"restarts", "how often containers were restarted", cel.IntType, on(func(p *podFacts) any { return types.Int(p.Restarts) })},
	{"lastRestart", "when a container was last restarted", cel.TimestampType, on(func(p *podFacts) any { return instant(p.LastRestart) })},
	{"ip", "its address", cel.StringType, on(func(p *podFacts) any { return text(p.IP) })},
	{"why", "why it is in its state, as a sentence", cel.StringType, on(func(p *podFacts) any { return text(p.Why) })},
	{"started", "when the node took it", cel.TimestampType, on(func(p *podFacts) any { return stamp(p.started) })},
	{"readyAt", "when it became ready; unknown while it is not", cel.TimestampType, on(func(p *podFacts) any { return stamp(p.readyAt) })},
	{"deletion", "when it should be gone: the time of the deletion and its grace period; unknown if it is not being deleted", cel.TimestampType, on(func(p *podFacts) any { return stamp(p.deletion) })},
	{"finalizers", "the finalizers that keep it", cel.ListType(cel.StringType), on(func(p *podFacts) any { return texts(p.finalizers) })},
	{"restartPolicy", "Always, OnFailure or Never", cel.StringType, on(func(p *podFacts) any { return text(p.restartPolicy) })},
	{"ownerKind", "the kind of its controller, such as `Job`; empty without a controller", cel.StringType, on(func(p *podFacts) any { return text(p.ownerKind) })},
	{"ownerName", "the name of its controller", cel.StringType, on(func(p *podFacts) any { return text(p.ownerName) })},
	{"priorityClass", "the name of its priority class", cel.StringType, on(func(p *podFacts) any { return text(p.priorityClass) })},
	{"qosClass", "Guaranteed, Burstable or BestEffort", cel.StringType, on(func(p *podFacts) any { return text(p.qosClass) })},
	{"labels", "its labels", cel.MapType(cel.StringType, cel.StringType), on(func(p *podFacts) any { return textMap(p.labels) })},
	{"annotations", "its annotations", cel.MapType(cel.StringType, cel.StringType), on(func(p *podFacts) any { return textMap(p.Annotations) })},
	{"conditions", "its conditions by type", cel.MapType(cel.StringType, cel.ObjectType("Condition")), func(o *object) any { return conditionMap(o, o.v.(*podFacts).conditions) }},
	{"containerDetails", "its containers, init containers first", listOf("Container"), func(o *object) any { return list(o, containerType, o.v.(*podFacts).containers) }},
	{"delivery", "how far the API server knows its status", cel.ObjectType("Delivery"), func(o *object) any {
		return &object{typ: deliveryType, at: o.at, v: &o.v.(*podFacts).Delivery}
	}},
	{"drift", "how many differences last longer than news takes", cel.IntType, on(func(p *podFacts) any { return types.Int(p.Drift) })},
	{"differences", "how what the API reports of it is not true", listOf("Difference"), func(o *object) any { return list(o, differenceType, o.v.(*podFacts).Differences) }},
	{"causes", "the codes of why it is in its state, the deepest ones, such as `ReadinessProbeFailing`", cel.ListType(cel.StringType), on(func(p *podFacts) any { return texts(p.causes()) })},
}

var reasonFields = []field{
	{"code", "a word in CamelCase", cel.StringType, on(func(r *guard.Reason) any { return text(r.Code) })},
	{"message", "the evidence in words", cel.StringType, on(func(r *guard.Reason) any { return text(r.Message) })},
	{"since", "since when", cel.TimestampType, on(func(r *guard.Reason) any { return stamp(r.Since) })},
}

var changeFields = []field{
	{"kind", "Phase, Condition, Container, Ready, Restart, Probe, Hook, Admission, Delivery, Deletion, Node, Drift, Log or Action", cel.StringType, on(func(r *history.Record) any { return text(string(r.Kind)) })},
	{"subject", "what it is about within its kind, such as the type of a condition", cel.StringType, on(func(r *history.Record) any { return text(r.Subject) })},
	{"container", "the name of the container, if it is about one", cel.StringType, on(func(r *history.Record) any { return text(r.Container) })},
	{"from", "what it was", cel.StringType, on(func(r *history.Record) any { return text(r.From) })},
	{"to", "what it became", cel.StringType, on(func(r *history.Record) any { return text(r.To) })},
	{"reason", "a word in CamelCase", cel.StringType, on(func(r *history.Record) any { return text(r.Reason) })},
	{"message", "the cause in words", cel.StringType, on(func(r *history.Record) any { return text(r.Message) })},
	{"observed", "when the node noticed it", cel.TimestampType, on(func(r *history.Record) any { return stamp(r.Observed) })},
}

// conditionMap makes the map of conditions by type.
func conditionMap(o *object, conditions []condition) ref.Val {
	values := make(map[ref.Val]ref.Val, min(len(conditions), maxItems))
	for i := range conditions[:min(len(conditions), maxItems)] {
		values[types.String(conditions[i].kind)] = &object{typ: conditionType, at: o.at, v: &conditions[i]}
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, values)
}

func podConditions(list []v1.PodCondition) []condition {
	conditions := make([]condition, len(list))
	for i, c := range list {
		conditions[i] = condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time}
	}
	return conditions
}

func nodeConditions(list []v1.NodeCondition) []condition {
	conditions := make([]condition, len(list))
	for i, c := range list {
		conditions[i] = condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time}
	}
	return conditions
}
