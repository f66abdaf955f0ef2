package audit_test

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/audit"
)

// An observer in a container that does not see the machine's processes must not say that there is no kubelet.
func TestProcessesThatAreNotSeenAreNotGone(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	good := audit.Answer{From: "x", At: now, Since: now.Add(-time.Hour)}
	for _, known := range []bool{true, false} {
		f := audit.Facts{Now: now, Node: "n1"}
		f.APIAnswer, f.RuntimeAnswer, f.MachineAnswer = good, good, good
		f.KubeletAnswer = audit.Answer{Err: "connection refused", At: now.Add(-time.Hour), Silent: now.Add(-time.Hour)}
		f.Lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-time.Hour)}}}
		f.LeaseAt = now.Add(-time.Hour)
		f.ProcessKnown = known
		differences := audit.Compare(f)
		if len(differences) == 0 {
			t.Fatal("a lease that was not renewed for an hour is no difference")
		}
		for _, d := range differences {
			if claims := strings.Contains(d.Message+d.Do, "does not run") || strings.Contains(d.Do, "Start the kubelet"); claims != known {
				t.Errorf("processes known: %t, got %q, %q", known, d.Message, d.Do)
			}
		}
	}
}
