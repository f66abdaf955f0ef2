package notify

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/nodecondition"
)

// ConditionType is the condition of the Node. True: the kubelet does its work.
const ConditionType v1.NodeConditionType = "KubeletHealthy"

// ReasonHealthy is the reason of the condition of a healthy kubelet. Otherwise it is the first of the verdict's reasons.
const ReasonHealthy = "KubeletIsHealthy"

// Terms define how the condition is maintained. An old heartbeat shows that the guard is gone. At the guard's end the condition
// is removed, since a stale condition must not be taken for a verdict.
var Terms = nodecondition.Terms{RemoveAtEnd: true}

// Condition writes the condition of the Node, as a [guard.Output].
type Condition struct {
	Keeper interface{ Set(...v1.NodeCondition) }
}

// Notify implements [guard.Output].
func (c Condition) Notify(n guard.Notice) { c.Keeper.Set(condition(n.Report)) }

// Events makes Events of the Node, as a [guard.Output].
type Events struct {
	// Record takes an Event of the Node. It must not block.
	Record func(eventType, reason, message string)
}

// Notify implements [guard.Output].
func (e Events) Notify(n guard.Notice) {
	switch n.Kind {
	case guard.NoticeReport:
	case guard.NoticeHealthy:
		e.Record(v1.EventTypeNormal, string(n.Kind), n.Message)
	default:
		e.Record(v1.EventTypeWarning, string(n.Kind), n.Message)
	}
}

// condition is a report as a condition.
func condition(r guard.Report) v1.NodeCondition {
	want := v1.NodeCondition{Type: ConditionType, Message: guard.Summary(r.Verdict)}
	switch r.Health {
	case guard.Healthy:
		want.Status, want.Reason = v1.ConditionTrue, ReasonHealthy
	case guard.Degraded:
		want.Status, want.Reason = v1.ConditionTrue, "KubeletIsDegraded"
	case guard.Unhealthy:
		want.Status, want.Reason = v1.ConditionFalse, "KubeletIsUnhealthy"
	default:
		want.Status, want.Reason = v1.ConditionUnknown, "TooLittleEvidence"
	}
	if r.Health != guard.Healthy && len(r.Reasons) > 0 {
		want.Reason = r.Reasons[0].Code
	}
	if r.Health == guard.Unhealthy && r.Withheld != "" {
		want.Message += "; no restart: " + r.Withheld
	}
	return want
}
