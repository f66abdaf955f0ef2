package audit_test

import (
	"testing"
	"time"

	"github.com/statusd/statusd/internal/audit"
)

// BenchmarkAudit is one audit of a node with 100 pods of three containers each.
func BenchmarkAudit(b *testing.B) {
	n := steadyOf("several", 100).finish()
	n.own = true
	a := audit.NewAuditor(audit.AuditorOptions{})
	facts := n.facts(time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		facts.Now = facts.Now.Add(time.Second)
		a.Audit(facts)
	}
}
