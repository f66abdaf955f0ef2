package overview

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
)

// Severity is how bad a node is, the worst highest.
type Severity int

// The severities.
const (
	Fine    Severity = iota
	Limited          // a side is silent: drift may be missed
	NotSeen          // nothing is known of the node
	Impaired
	Wrong  // the API is wrong about something of the node
	Broken // the kubelet does not do its work, or two of them do
)

// Severity is the severity of a node.
func (n *Node) Severity() Severity {
	if n.Overview == nil {
		switch {
		case n.Healthy == v1.ConditionFalse:
			return Broken
		case n.Truthful == v1.ConditionFalse:
			return Wrong
		case n.Ready != v1.ConditionTrue:
			return Impaired
		}
		return NotSeen
	}
	worst := Fine
	raise := func(s Severity) { worst = max(worst, s) }
	if a := n.Overview.Audit; a != nil {
		if len(a.Silent) > 0 {
			raise(Limited)
		}
		if len(a.Drift) > 0 || a.NodeMissing {
			raise(Wrong)
		}
		if n.kind(audit.TwoKubelets) {
			raise(Broken)
		}
	}
	if g := n.Overview.Guard; g != nil {
		raise(map[guard.Health]Severity{guard.Unhealthy: Broken, guard.Degraded: Impaired, guard.Unknown: NotSeen}[g.Health])
	}
	return worst
}

func (n *Node) kind(kind audit.Kind) bool {
	for _, d := range n.Overview.Audit.Drift {
		if d.Kind == kind {
			return true
		}
	}
	return false
}

// Drift is how many drifts a node has.
func (n *Node) Drift() (count int) {
	if n.Overview == nil || n.Overview.Audit == nil {
		return 0
	}
	for _, d := range n.Overview.Audit.Drift {
		count += d.Count
	}
	return count
}

// since is when the oldest problem began.
func (n *Node) since() (oldest time.Time) {
	earlier := func(t time.Time) {
		if oldest.IsZero() || t.Before(oldest) {
			oldest = t
		}
	}
	if n.Overview == nil {
		return oldest
	}
	if a := n.Overview.Audit; a != nil {
		for _, d := range a.Drift {
			earlier(d.Since)
		}
	}
	if g := n.Overview.Guard; g != nil && g.Health != guard.Healthy {
		earlier(g.Since)
	}
	return oldest
}

// Sort puts the worst first: by severity, then by the number of drifts, then by how long it lasts, then by name.
func Sort(nodes []Node) {
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(int(b.Severity()-a.Severity()), b.Drift()-a.Drift(), older(a.since(), b.since()), cmp.Compare(a.Name, b.Name))
	})
}

// older compares two times; a time that is not known is the latest.
func older(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return cmp.Compare(boolInt(a.IsZero()), boolInt(b.IsZero()))
	}
	return a.Compare(b)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
