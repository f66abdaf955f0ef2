package kubeoutputs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/nodecondition"
)

const (
	// Annotation of a rule names the condition that the Node has while an alert of the rule fires.
	Annotation = "nodeCondition"
	// Prefix is the prefix of the types of these conditions. No other program writes it, so the
	// conditions of removed rules can be recognized.
	Prefix = "statusd/"
	// maxMessage bounds the message of a condition.
	maxMessage = 1024
)

// Conditions maintains a condition of the Node for each rule with the annotation nodeCondition: True
// while an alert of the rule fires, and removed otherwise. Make it with [NewConditions].
type Conditions struct {
	owner *nodecondition.Owner

	mu      sync.Mutex // guards what follows
	firing  map[v1.NodeConditionType]map[string]alert.Alert
	changed map[v1.NodeConditionType]bool // since the last write
}

// NewConditions makes the output to the conditions of a Node, which the keeper writes. They stay when it ends: a restart is no
// event in the life of the node.
func NewConditions(keeper *nodecondition.Keeper) *Conditions {
	c := &Conditions{firing: map[v1.NodeConditionType]map[string]alert.Alert{}, changed: map[v1.NodeConditionType]bool{}}
	c.owner = keeper.Owner(nodecondition.Terms{Prefix: Prefix, Before: c.set})
	return c
}

// Name is conditions.
func (*Conditions) Name() string { return "conditions" }

// Notify takes an alert. Notify never blocks.
func (c *Conditions) Notify(n engine.Notification) {
	name := n.Alert.Annotations[Annotation]
	if name == "" {
		done(n)
		return
	}
	kind := v1.NodeConditionType(Prefix + strings.TrimPrefix(name, Prefix))
	c.mu.Lock()
	c.changed[kind] = true
	if c.firing[kind] == nil {
		c.firing[kind] = map[string]alert.Alert{}
	}
	if n.Alert.State == alert.Firing && n.Alert.Silenced == "" {
		c.firing[kind][n.Alert.Fingerprint] = n.Alert
	} else {
		delete(c.firing[kind], n.Alert.Fingerprint)
	}
	c.mu.Unlock()
	c.owner.Then(n.Done)
}

// set has the keeper write what the alerts amount to. It is done once per write, not per alert, since thousands may
// fire at once.
func (c *Conditions) set() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind := range c.changed {
		if alerts := c.firing[kind]; len(alerts) > 0 {
			c.owner.Set(condition(kind, alerts))
		} else {
			delete(c.firing, kind)
			c.owner.Remove(kind)
		}
	}
	clear(c.changed)
}

// condition is what the Node has while alerts of a rule fire.
func condition(kind v1.NodeConditionType, firing map[string]alert.Alert) v1.NodeCondition {
	alerts := slices.SortedFunc(maps.Values(firing), func(a, b alert.Alert) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	return v1.NodeCondition{Type: kind, Status: v1.ConditionTrue, Reason: alerts[0].Rule, Message: message(alerts)}
}

// message names what fires, within bounds.
func message(alerts []alert.Alert) string {
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
