package nodecondition

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lines "github.com/statusd/statusd/internal/text"
)

// goal is what the own conditions of a Node should be.
type goal struct {
	// conditions by type; nil: the condition must not exist.
	conditions map[v1.NodeConditionType]*v1.NodeCondition
	// prefixes are prefixes of types. All conditions with such a type that are not in conditions are
	// removed.
	prefixes []string
	// heartbeat is how old a condition becomes before it is written though it does not change.
	heartbeat time.Duration
}

// plan returns the changes of a strategic merge patch that reach the goal, none if it is reached. The time of a
// transition stays while the status does. If one condition is written, all are: their heartbeats cost nothing then.
func (g goal) plan(have []v1.NodeCondition, now time.Time) (changes []any) {
	now = now.Truncate(time.Second) // the API's precision
	present := map[v1.NodeConditionType]v1.NodeCondition{}
	for _, c := range have {
		present[c.Type] = c
		want, named := g.conditions[c.Type]
		if want == nil && (named || g.isOwn(c.Type)) {
			changes = append(changes, removal(c.Type))
		}
	}
	due := len(changes) > 0
	for _, kind := range slices.Sorted(maps.Keys(g.conditions)) {
		want := g.conditions[kind]
		if want == nil {
			continue
		}
		next, before := *want, present[kind]
		next.LastHeartbeatTime, next.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		if before.Status == next.Status {
			next.LastTransitionTime = before.LastTransitionTime
		}
		age := now.Sub(before.LastHeartbeatTime.Time)
		due = due || !same(before, next) || age < 0 || age >= g.heartbeat
		changes = append(changes, next)
	}
	if !due {
		return nil
	}
	return changes
}

// isOwn reports whether a type begins with one of the prefixes.
func (g goal) isOwn(kind v1.NodeConditionType) bool {
	return slices.ContainsFunc(g.prefixes, func(prefix string) bool { return strings.HasPrefix(string(kind), prefix) })
}

// removal is the change that removes a condition.
func removal(kind v1.NodeConditionType) map[string]string {
	return map[string]string{"$patch": "delete", "type": string(kind)}
}

func same(a, b v1.NodeCondition) bool {
	return sameStatus(a, b) && a.Message == b.Message
}

func sameStatus(a, b v1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason
}

// maxMessage is how long the message of a condition may be, in bytes.
const maxMessage = 1024

// bounded is a message of at most maxMessage bytes, in valid UTF-8 and on one line.
func bounded(text string) string {
	return lines.Cut(strings.ReplaceAll(text, "\n", " "), maxMessage)
}
