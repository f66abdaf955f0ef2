package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/view"
)

type audited audit.Report

func (a audited) Report() audit.Report             { return audit.Report(a) }
func (audited) Pictures(types.UID) []audit.Picture { return nil }

type guarded guard.Report

func (g guarded) Report() guard.Report { return guard.Report(g) }

// The overview is served without authentication.
func TestOverview_CountsDriftAndNamesNoPod(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := audit.Ref{UID: "uid-secret", Namespace: "ns-secret", Name: "name-secret"}
	difference := func(kind audit.Kind, age time.Duration, certainty audit.Certainty, drift bool) audit.Difference {
		return audit.Difference{Kind: kind, Pod: pod, Container: "container-secret", Message: "message-secret", Do: "do-secret", Since: now.Add(-age), Certainty: certainty, Drift: drift,
			Evidence: []audit.Evidence{{Text: "evidence-secret"}}}
	}
	o := view.NewOverview(view.Sources{
		Audit: audited{
			Sides: map[audit.Side]audit.Answer{audit.SideAPI: {At: now}, audit.SideRuntime: {Err: "error-secret"}},
			Differences: []audit.Difference{
				difference(audit.StuckTerminating, time.Minute, audit.Possible, true), difference(audit.StuckTerminating, time.Hour, audit.Certain, true),
				difference(audit.ForeignWriter, time.Hour, audit.Certain, false), difference(audit.LeaseStale, time.Second, audit.Likely, true),
			},
		},
		Guard: guarded{
			Verdict:  guard.Verdict{Health: guard.Unhealthy, Reasons: []guard.Reason{{Code: "ProcessGone", Message: "reason-secret"}}},
			Restarts: []guard.Restart{{At: now.Add(-time.Hour), Evidence: "dir-secret"}, {At: now}},
		},
	}, "node-1", "v0", now)
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("it names too much: %s", text)
	}
	if d := o.Audit.Drift; len(d) != 2 || d[0].Kind != audit.StuckTerminating || d[0].Count != 2 || !d[0].Since.Equal(now.Add(-time.Hour)) || d[0].Certainty != audit.Certain || d[1].Kind != audit.LeaseStale {
		t.Errorf("got drift %+v", d)
	}
	if len(o.Audit.Answers) != 1 || len(o.Audit.Silent) != 1 || o.Audit.Silent[0] != audit.SideRuntime {
		t.Errorf("got sides %+v", o.Audit)
	}
	if g := o.Guard; g.Health != guard.Unhealthy || len(g.Reasons) != 1 || g.Restarts != 2 || !g.LastRestart.Equal(now) {
		t.Errorf("got guard %+v", g)
	}
}
