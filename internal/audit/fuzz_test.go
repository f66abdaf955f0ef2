package audit

import (
	"testing"
	"time"
)

// Whatever a state file has, an audit that begins with it ends, and its state can be read again.
func FuzzState(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := NewAuditor(AuditorOptions{})
	a.Audit(Facts{Now: now})
	f.Add(a.State())
	f.Add([]byte(`{"version":1,"samples":{"api":null},"changes":{"a":null},"entries":[null,{}],"graces":{"a":1}}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		a := NewAuditor(AuditorOptions{State: state})
		a.Audit(Facts{Now: now})
		a.Audit(Facts{Now: now.Add(time.Minute)})
		NewAuditor(AuditorOptions{State: a.State()}).Audit(Facts{Now: now.Add(2 * time.Minute)})
	})
}
