package audit_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/audit"
)

// afterRestore is a node whose API has other containers from the second minute on; the kubelet does not write them again. It starts again at a time.
func afterRestore(restart time.Duration, noticed bool) *simNode {
	const lost = 2 * time.Minute
	n := steady(8)
	for _, s := range n.pods {
		s.lieAPI = func(now time.Duration, pod *v1.Pod) {
			if now > lost && now < restart {
				pod.Status = *pod.Status.DeepCopy() // the truth is shared
				for i := range pod.Status.ContainerStatuses {
					pod.Status.ContainerStatuses[i].ContainerID = "containerd://of-the-backup"
				}
			}
		}
	}
	n.change = func(now time.Duration, f *audit.Facts) {
		if noticed && now > lost {
			f.APIRestored = at(lost)
		}
		if now > restart {
			f.Process = &audit.Process{PID: 900, Started: at(restart)}
		}
	}
	return n.finish()
}

func TestRestored_IsOneDifferenceForTheNode(t *testing.T) {
	begins, last, first := opened(afterRestore(never, true), 6*time.Minute)
	d := last[audit.APIRestored]
	if len(begins) != 1 || begins[audit.APIRestored] != 1 || first[audit.APIRestored] > 4*time.Minute {
		t.Fatalf("began %v at %v", begins, first)
	}
	if !strings.Contains(d.Message, "8 pods") || !strings.Contains(d.Do, "Restart the kubelet") || d.Pod.UID != "" || d.Certainty != audit.Certain || len(d.Evidence) < 3 {
		t.Errorf("got %+v", d)
	}
	// Without the restore each pod is a difference of its own.
	if begins, _, _ := opened(afterRestore(never, false), 6*time.Minute); begins[audit.APIRestored] != 0 || len(begins) == 0 {
		t.Errorf("without a restore: %v", begins)
	}
}

// It is over once the kubelet has started again and has corrected the API.
func TestRestored_EndsWithARestartOfTheKubelet(t *testing.T) {
	n := afterRestore(5*time.Minute, true)
	a := audit.NewAuditor(audit.AuditorOptions{})
	var report audit.Report
	for now := time.Duration(0); now <= 10*time.Minute; now += time.Second / 2 {
		report = a.Audit(n.facts(now))
	}
	for _, d := range report.Differences {
		if d.Drift {
			t.Errorf("still there: %+v", d)
		}
	}
}
