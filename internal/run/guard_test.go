package run

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/guard"
)

// verdict is what the query API says.
func verdict(t *testing.T, a *Process) guard.Report {
	t.Helper()
	code, body := get(t, a, "/apis/v1/guard")
	var report guard.Report
	if err := json.Unmarshal([]byte(body), &report); err != nil || code != http.StatusOK {
		t.Fatalf("got %d %s (%v)", code, body, err)
	}
	return report
}

func awaitVerdict(t *testing.T, a *Process, want guard.Health) guard.Report {
	t.Helper()
	for {
		if report := verdict(t, a); report.Health == want {
			return report
		}
		if !backoff.Sleep(t.Context(), 100*time.Millisecond) {
			t.Fatal("the test has ended")
		}
	}
}

// A node without an API server has a verdict too.
func TestStandaloneAgentJudgesItself(t *testing.T) {
	a, _ := started(t, testConfig(t, "judged"))
	report := awaitVerdict(t, a, guard.Healthy)
	if report.Unit != "statusd" || report.PID == 0 {
		t.Errorf("got %+v, want a verdict about this process", report)
	}
	if _, metrics := get(t, a, "/metrics"); !strings.Contains(metrics, `statusd_kubelet_verdict{health="healthy"} 1`) {
		t.Error("the metrics have no verdict")
	}
}

// A verdict can be switched off.
func TestAgentWithoutAVerdict(t *testing.T) {
	c := testConfig(t, "unjudged")
	c.Guard = GuardConfig{}
	a, _ := started(t, c)
	if code, body := get(t, a, "/apis/v1/guard"); code != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", code, body)
	}
}
