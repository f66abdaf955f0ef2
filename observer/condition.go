package observer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/observe"
)

// ConditionType is the condition of the Node: True while what the API says about it is true.
const ConditionType v1.NodeConditionType = "StatusTruthful"

// The reasons of the condition.
const (
	conditionTrue    = "NoDrift"
	conditionFalse   = "Drift"
	conditionUnknown = "SideSilent"
)

const (
	// conditionEvery bounds how often the condition is written though its status changes.
	conditionEvery = 2 * time.Second
	// conditionMessage is how often it is written though only its message changes.
	conditionMessage = 30 * time.Second
	// conditionHeartbeat is how often it is written though it does not change.
	conditionHeartbeat = 5 * time.Minute
	// conditionTimeout is how long one write may take.
	conditionTimeout = 10 * time.Second
	// removeTimeout is how long the removal may take when the observer ends.
	removeTimeout = 3 * time.Second
)

// truthful is the condition that an audit amounts to. Pure function.
func truthful(report *observe.Report, pods int) v1.NodeCondition {
	c := v1.NodeCondition{Type: ConditionType}
	var first *observe.Difference
	drift, affected := 0, map[types.UID]bool{}
	for i := range report.Differences {
		if d := &report.Differences[i]; d.Drift {
			drift++
			affected[d.Pod.UID] = true
			if first == nil {
				first = d
			}
		}
	}
	if first != nil {
		delete(affected, "")
		c.Status, c.Reason = v1.ConditionFalse, conditionFalse
		c.Message = fmt.Sprintf("%d differences that last, of %d of %d pods; the first: %s", drift, len(affected), pods, first.Message)
		return c
	}
	for _, side := range sideOrder {
		if answer := report.Sides[side]; !answer.Known() {
			c.Status, c.Reason = v1.ConditionUnknown, conditionUnknown
			c.Message = fmt.Sprintf("%s does not answer: %s", sideNames[side], answer.Err)
			return c
		}
	}
	c.Status, c.Reason, c.Message = v1.ConditionTrue, conditionTrue, "what the API says about the pods of this node is true"
	return c
}

// condition keeps the condition of the Node.
type condition struct {
	client kubernetes.Interface
	node   string
	log    *slog.Logger
	news   chan struct{} // capacity 1: one is enough

	mu     sync.Mutex // guards wanted
	wanted *v1.NodeCondition
}

func newCondition(client kubernetes.Interface, node string, log *slog.Logger) *condition {
	return &condition{client: client, node: node, log: log, news: make(chan struct{}, 1)}
}

// want takes what the condition should be. It returns at once.
func (c *condition) want(next v1.NodeCondition) {
	c.mu.Lock()
	changed := c.wanted == nil || c.wanted.Status != next.Status || c.wanted.Reason != next.Reason
	c.wanted = &next
	c.mu.Unlock()
	if changed {
		wake.Up(c.news)
	}
}

// run keeps the condition until ctx ends, and then removes it: what no longer is written must not go on saying
// that all is well.
func (c *condition) run(ctx context.Context) error {
	if !c.keep(ctx) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := c.patch(ctx, map[string]string{"type": string(ConditionType), "$patch": "delete"})
	if err != nil && !apierrors.IsNotFound(err) {
		c.log.Warn("condition of the node not removed", "err", err)
	}
	return nil
}

// keep writes the condition until ctx ends: when it has changed, but not more often than conditionEvery, and as a
// heartbeat. It reports whether it may have written it.
func (c *condition) keep(ctx context.Context) (tried bool) {
	var written v1.NodeCondition
	failed := false
	look := time.NewTicker(conditionMessage)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return tried
		case <-look.C:
			if c.same(written) && time.Since(written.LastHeartbeatTime.Time) < conditionHeartbeat {
				continue
			}
		case <-c.news:
		}
		tried = true
		next, err := c.write(ctx, written)
		switch {
		case ctx.Err() != nil:
			return tried
		case err != nil:
			if !failed {
				c.log.Warn("condition of the node not written, will retry", "err", err)
			}
			failed = true
			wake.Up(c.news)
		default:
			failed, written = false, next
		}
		if !backoff.Sleep(ctx, conditionEvery) {
			return tried
		}
	}
}

// same reports whether the condition is as it was written.
func (c *condition) same(written v1.NodeCondition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted == nil || c.wanted.Status == written.Status && c.wanted.Message == written.Message
}

// write patches the condition as it should be now. The time of its transition stays while its status does.
func (c *condition) write(ctx context.Context, written v1.NodeCondition) (v1.NodeCondition, error) {
	c.mu.Lock()
	wanted := c.wanted
	c.mu.Unlock()
	if wanted == nil {
		return written, nil
	}
	next := *wanted
	next.LastHeartbeatTime = metav1.Now()
	next.LastTransitionTime = next.LastHeartbeatTime
	if written.Status == next.Status {
		next.LastTransitionTime = written.LastTransitionTime
	}
	return next, c.patch(ctx, next)
}

func (c *condition) patch(ctx context.Context, condition any) error {
	data, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	_, err = c.client.CoreV1().Nodes().Patch(ctx, c.node, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("condition %s of node %s: %w", ConditionType, c.node, err)
	}
	return nil
}
