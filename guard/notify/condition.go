package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
)

// ConditionType is the condition of the Node. True: the kubelet does its work.
const ConditionType v1.NodeConditionType = "KubeletHealthy"

const (
	requestTimeout = 10 * time.Second
	// heartbeat is how often the condition is written though nothing has changed: a Node may be created again, and
	// an old heartbeat shows that the guard is gone.
	heartbeat  = time.Minute
	maxMessage = 1024
)

// retries space the tries of a write.
var retries = backoff.Schedule{First: 500 * time.Millisecond, Limit: 15 * time.Second}

// Condition writes the condition of the Node, as a [guard.Output].
type Condition struct {
	client kubernetes.Interface
	node   string
	log    *slog.Logger
	news   chan struct{} // of capacity 1
	// written: the API has the condition. Of Run alone.
	written bool

	mu     sync.Mutex // guards report
	report *guard.Report
}

// NewCondition makes the output. It writes nothing before Run.
func NewCondition(client kubernetes.Interface, node string, log *slog.Logger) *Condition {
	return &Condition{client: client, node: node, log: orDiscard(log), news: make(chan struct{}, 1)}
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Notify implements [guard.Output].
func (c *Condition) Notify(n guard.Notice) {
	c.mu.Lock()
	c.report = &n.Report
	c.mu.Unlock()
	wake.Up(c.news)
}

// Run writes the newest report until ctx ends, and then removes the condition: what does not look any more must not
// be taken for a verdict.
func (c *Condition) Run(ctx context.Context) error {
	defer c.remove(ctx)
	select {
	case <-ctx.Done():
		return nil
	case <-c.news:
	}
	var known *v1.NodeCondition // what the API has, as far as we know
	for failures := 0; ; {
		c.mu.Lock()
		want := condition(*c.report)
		c.mu.Unlock()
		written, err := c.write(ctx, want, known)
		if ctx.Err() != nil {
			return nil
		}
		wait := heartbeat
		if known = written; err != nil {
			if failures++; failures == 1 {
				c.log.Warn("condition of the node not written, will retry", "node", c.node, "err", err)
			}
			wait = retries.Random(failures)
		} else {
			failures, c.written = 0, true
		}
		if !c.pause(ctx, wait) {
			return nil
		}
	}
}

// removeTimeout bounds how long an end in order waits for an API server that does not answer.
const removeTimeout = 2 * time.Second

// remove takes the condition away, once.
func (c *Condition) remove(ctx context.Context) {
	if !c.written {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"$patch":"delete","type":%q}]}}`, ConditionType)
	if _, err := c.client.CoreV1().Nodes().Patch(ctx, c.node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		c.log.Warn("condition of the node not removed; its heartbeat shows that it is old", "node", c.node, "err", err)
	}
}

// pause waits for news or for a time. It reports whether ctx lasts.
func (c *Condition) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-c.news:
	case <-timer.C:
	}
	return true
}

// condition is a report as a condition.
func condition(r guard.Report) v1.NodeCondition {
	want := v1.NodeCondition{Type: ConditionType, Message: bounded(guard.Summary(r.Verdict), maxMessage)}
	switch r.Health {
	case guard.Healthy:
		want.Status, want.Reason = v1.ConditionTrue, "KubeletIsHealthy"
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
		want.Message = bounded(want.Message+"; no restart: "+r.Withheld, maxMessage)
	}
	return want
}

// write patches the condition alone. The time of the transition is the old one while the status is.
func (c *Condition) write(ctx context.Context, want v1.NodeCondition, known *v1.NodeCondition) (written *v1.NodeCondition, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	nodes := c.client.CoreV1().Nodes()
	if known == nil {
		node, err := nodes.Get(ctx, c.node, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		known = find(node)
	}
	now := metav1.Now()
	want.LastHeartbeatTime, want.LastTransitionTime = now, now
	if known != nil && known.Status == want.Status {
		want.LastTransitionTime = known.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{want}}})
	if err != nil {
		return nil, err
	}
	node, err := nodes.Patch(ctx, c.node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, err
	}
	if written = find(node); written == nil {
		return nil, fmt.Errorf("notify: the API server has not stored condition %s", ConditionType)
	}
	return written, nil
}

func find(node *v1.Node) *v1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == ConditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// bounded is a text of at most so many bytes, in valid UTF-8 and on one line.
func bounded(text string, limit int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\n", " "), "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}
