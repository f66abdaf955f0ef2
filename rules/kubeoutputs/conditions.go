package kubeoutputs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/rules"
)

const (
	// Annotation of a rule names the condition that the Node has while an alert of the rule fires.
	Annotation = "nodeCondition"
	// Prefix is what the types of these conditions begin with: nothing else writes them, so that those
	// of a rule that is gone are known.
	Prefix = "statusd/"
	// heartbeat is how often conditions are written that do not change.
	heartbeat = 5 * time.Minute
	// settle is how long conditions from before the start are left, until all alerts are known.
	settle = 30 * time.Second
	// maxMessage bounds the message of a condition.
	maxMessage     = 1024
	requestTimeout = 10 * time.Second
)

// conditionRetries spaces the tries of a write.
var conditionRetries = backoff.Schedule{First: 500 * time.Millisecond, Limit: 30 * time.Second}

// Conditions keeps a condition of the Node for each rule that has the annotation nodeCondition: True
// while an alert of it fires, and removed when none does. Make it with [NewConditions].
type Conditions struct {
	node   string
	client kubernetes.Interface
	log    *slog.Logger
	woken  chan struct{}

	mu     sync.Mutex // guards what follows
	firing map[v1.NodeConditionType]map[string]api.Alert
	owed   []func() // the Done of what was not written yet
}

// NewConditions makes the output to the conditions of a Node.
func NewConditions(node string, client kubernetes.Interface, log *slog.Logger) *Conditions {
	return &Conditions{node: node, client: client, log: log, woken: make(chan struct{}, 1), firing: map[v1.NodeConditionType]map[string]api.Alert{}}
}

// Name is conditions.
func (*Conditions) Name() string { return "conditions" }

// Notify takes an alert. It never blocks.
func (c *Conditions) Notify(n rules.Notification) {
	name := n.Alert.Annotations[Annotation]
	if name == "" {
		done(n)
		return
	}
	kind := v1.NodeConditionType(Prefix + strings.TrimPrefix(name, Prefix))
	c.mu.Lock()
	if c.firing[kind] == nil {
		c.firing[kind] = map[string]api.Alert{}
	}
	if n.Alert.State == api.AlertFiring && n.Alert.Silenced == "" {
		c.firing[kind][n.Alert.Fingerprint] = n.Alert
	} else {
		delete(c.firing[kind], n.Alert.Fingerprint)
	}
	if n.Done != nil {
		c.owed = append(c.owed, n.Done)
	}
	c.mu.Unlock()
	wake.Up(c.woken)
}

// Run keeps the conditions until ctx ends. They stay then: a restart is no event in the life of the node.
func (c *Conditions) Run(ctx context.Context) error {
	begin := time.Now()
	wait := settle
	for attempt := 0; ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-c.woken:
		case <-timer.C:
		}
		timer.Stop()
		wait = heartbeat
		if early := settle - time.Since(begin); early > 0 {
			wait = early
		}
		if err := c.write(ctx, time.Since(begin) >= settle); err != nil && ctx.Err() == nil {
			attempt++
			c.log.Warn("conditions of the node not up to date, will retry", "attempt", attempt, "err", err)
			wait = conditionRetries.Random(attempt)
		} else {
			attempt = 0
		}
	}
}

// write brings the Node up to date.
func (c *Conditions) write(ctx context.Context, settled bool) error {
	want, owed := c.want()
	err := c.patch(ctx, want, settled)
	if err != nil {
		c.mu.Lock()
		c.owed = append(owed, c.owed...)
		c.mu.Unlock()
		return err
	}
	for _, done := range owed {
		done()
	}
	return nil
}

// want is what the Node should show, and what is owed once it does.
func (c *Conditions) want() (want map[v1.NodeConditionType][]api.Alert, owed []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want = map[v1.NodeConditionType][]api.Alert{}
	for kind, alerts := range c.firing {
		want[kind] = slices.SortedFunc(maps.Values(alerts), func(a, b api.Alert) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
		if len(alerts) == 0 {
			delete(c.firing, kind)
		}
	}
	owed, c.owed = c.owed, nil
	return want, owed
}

func (c *Conditions) patch(ctx context.Context, want map[v1.NodeConditionType][]api.Alert, settled bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node, err := c.client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("kubeoutputs: get node: %w", err)
	}
	changes := plan(want, node.Status.Conditions, settled, time.Now())
	if len(changes) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": node.UID}, "status": map[string]any{"conditions": changes}})
	if err != nil {
		return fmt.Errorf("kubeoutputs: %w", err)
	}
	if _, err := c.client.CoreV1().Nodes().Patch(ctx, c.node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("kubeoutputs: patch conditions of the node: %w", err)
	}
	return nil
}

// plan returns the changes of a strategic merge patch that make the conditions those wanted. Only own
// types are touched; those of which nothing is known are removed once all alerts are known.
func plan(want map[v1.NodeConditionType][]api.Alert, have []v1.NodeCondition, settled bool, now time.Time) (changes []any) {
	at := metav1.NewTime(now.Truncate(time.Second)) // the API's precision
	present := map[v1.NodeConditionType]v1.NodeCondition{}
	for _, c := range have {
		present[c.Type] = c
		alerts, known := want[c.Type]
		if strings.HasPrefix(string(c.Type), Prefix) && len(alerts) == 0 && (known || settled) {
			changes = append(changes, map[string]string{"$patch": "delete", "type": string(c.Type)})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(want)) {
		alerts := want[kind]
		if len(alerts) == 0 {
			continue
		}
		next := v1.NodeCondition{Type: kind, Status: v1.ConditionTrue, Reason: alerts[0].Rule, Message: message(alerts), LastHeartbeatTime: at, LastTransitionTime: at}
		if before, there := present[kind]; there && before.Status == next.Status {
			if before.Reason == next.Reason && before.Message == next.Message && now.Sub(before.LastHeartbeatTime.Time) < heartbeat {
				continue
			}
			next.LastTransitionTime = before.LastTransitionTime
		}
		changes = append(changes, next)
	}
	return changes
}

// message names what fires, within bounds.
func message(alerts []api.Alert) string {
	var out strings.Builder
	for i := range alerts {
		line := sentence(&alerts[i])
		if out.Len()+len(line) > maxMessage-32 {
			fmt.Fprintf(&out, "; and %d more", len(alerts)-i)
			break
		}
		if i > 0 {
			out.WriteString("; ")
		}
		out.WriteString(line)
	}
	return strings.ToValidUTF8(out.String(), "?")
}
