package notify

import (
	"context"
	"log/slog"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/nodecondition"
)

// ConditionType is the condition of the Node. True: the kubelet does its work.
const ConditionType v1.NodeConditionType = "KubeletHealthy"

// ReasonHealthy is the reason of the condition of a healthy kubelet. Otherwise it is the first of the verdict's reasons.
const ReasonHealthy = "KubeletIsHealthy"

const (
	requestTimeout = 10 * time.Second
	// heartbeat is how often the condition is written though nothing has changed. An old one shows that the guard is
	// gone.
	heartbeat  = time.Minute
	maxMessage = 1024
)

// retries space the tries of a request.
var retries = backoff.Schedule{First: 500 * time.Millisecond, Limit: 15 * time.Second}

// Condition writes the condition of the Node, as a [guard.Output].
type Condition struct {
	keeper *nodecondition.Keeper
}

// NewCondition makes the output. It writes nothing before Run.
func NewCondition(client kubernetes.Interface, node string, log *slog.Logger) *Condition {
	return &Condition{nodecondition.New(nodecondition.Options{
		Client: client, Node: node, Logger: orDiscard(log), Heartbeat: heartbeat, RemoveAtEnd: true,
	})}
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Notify implements [guard.Output].
func (c *Condition) Notify(n guard.Notice) { c.keeper.Set(condition(n.Report)) }

// Run writes the newest report until ctx ends, and then removes the condition: what does not look any more must not
// be taken for a verdict.
func (c *Condition) Run(ctx context.Context) error { return c.keeper.Run(ctx) }

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

// bounded is a text of at most so many bytes, in valid UTF-8 and on one line.
func bounded(text string, limit int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\n", " "), "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}
