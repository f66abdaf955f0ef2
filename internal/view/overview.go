package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
)

// Overview is a node in a view of many nodes. It names no pod and no container: it is served without authentication, beside
// the metrics, which say as much.
type Overview struct {
	At      time.Time `json:"at"`
	Node    string    `json:"node"`
	Version string    `json:"version,omitempty"`
	// Audit and Guard are nil if the process has no audit or guard.
	Audit *AuditOverview `json:"audit,omitempty"`
	Guard *GuardOverview `json:"guard,omitempty"`
}

// AuditOverview is what an audit has found, by kind.
type AuditOverview struct {
	// Drift has one entry per kind of drift.
	Drift []DriftOverview `json:"drift"`
	// Answers are the sides that answer, Silent the sides that do not.
	Answers []audit.Side `json:"answers"`
	Silent  []audit.Side `json:"silent,omitempty"`
	// NodeMissing: the API has no Node of this name.
	NodeMissing bool `json:"nodeMissing,omitempty"`
}

// DriftOverview is the drift of one kind.
type DriftOverview struct {
	Kind  audit.Kind `json:"kind"`
	Count int        `json:"count"`
	// Since is when the oldest difference began, Certainty is the highest certainty.
	Since     time.Time       `json:"since"`
	Certainty audit.Certainty `json:"certainty"`
}

// GuardOverview is the verdict on a kubelet, and the guard's restarts.
type GuardOverview struct {
	Health guard.Health `json:"health"`
	Since  time.Time    `json:"since"`
	// Reasons are codes, the heaviest first.
	Reasons []string `json:"reasons,omitempty"`
	Helps   bool     `json:"restartHelps,omitempty"`
	// Withheld is why an unhealthy kubelet is not restarted.
	Withheld    string    `json:"withheld,omitempty"`
	Maintenance time.Time `json:"maintenance,omitzero"`
	// Restarts and Would count the restarts that are remembered, and the restarts of a dry run; the last restart is at LastRestart.
	Restarts    int       `json:"restarts,omitempty"`
	LastRestart time.Time `json:"lastRestart,omitzero"`
	Would       int       `json:"would,omitempty"`
}

// NewOverview makes the overview of a node.
func NewOverview(s Sources, node, version string, now time.Time) Overview {
	o := Overview{At: now, Node: node, Version: version}
	if s.Audit != nil {
		o.Audit = overviewOfAudit(s.Audit.Report())
	}
	if s.Guard != nil {
		o.Guard = overviewOfGuard(s.Guard.Report())
	}
	return o
}

func overviewOfAudit(r audit.Report) *AuditOverview {
	o := &AuditOverview{Drift: []DriftOverview{}, Answers: []audit.Side{}, NodeMissing: r.NodeMissing}
	for _, side := range slices.Sorted(maps.Keys(r.Sides)) {
		if r.Sides[side].Known() {
			o.Answers = append(o.Answers, side)
		} else {
			o.Silent = append(o.Silent, side)
		}
	}
	kinds := map[audit.Kind]*DriftOverview{}
	for i := range r.Differences {
		d := &r.Differences[i]
		if !d.Drift {
			continue
		}
		k := kinds[d.Kind]
		if k == nil {
			k = &DriftOverview{Kind: d.Kind, Since: d.Since, Certainty: d.Certainty}
			kinds[d.Kind] = k
		}
		k.Count++
		if d.Since.Before(k.Since) {
			k.Since = d.Since
		}
		if certaintyRank(d.Certainty) > certaintyRank(k.Certainty) {
			k.Certainty = d.Certainty
		}
	}
	for _, k := range kinds {
		o.Drift = append(o.Drift, *k)
	}
	slices.SortFunc(o.Drift, func(a, b DriftOverview) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Kind, b.Kind)) })
	return o
}

func certaintyRank(c audit.Certainty) int {
	return slices.Index([]audit.Certainty{audit.Possible, audit.Likely, audit.Certain}, c)
}

func overviewOfGuard(r guard.Report) *GuardOverview {
	o := &GuardOverview{
		Health: r.Health, Since: r.Since, Helps: r.Helps, Withheld: r.Withheld, Maintenance: r.Maintenance, Restarts: len(r.Restarts), Would: len(r.Would),
	}
	for _, reason := range r.Reasons {
		o.Reasons = append(o.Reasons, reason.Code)
	}
	for _, restart := range r.Restarts {
		if restart.At.After(o.LastRestart) {
			o.LastRestart = restart.At
		}
	}
	return o
}
