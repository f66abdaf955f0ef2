package engine

import (
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
	"github.com/statusd/statusd/internal/guard"
)

// watchman is a guard with evidence.
type watchman struct{ evidence guard.Evidence }

func (w *watchman) Report() guard.Report { return guard.Report{} }

func (w *watchman) Evidence() guard.Evidence { return w.evidence }

// The rules about a kubelet see the numbers of the guard's evidence, and none that is not known.
func TestTheEvidenceOfAGuardFires(t *testing.T) {
	now := testStart
	for _, c := range []struct {
		rule     string
		evidence guard.Evidence
		fires    bool
	}{
		{"KubeletDown", guard.Evidence{Process: guard.Read(now, guard.Process{Sure: true})}, true},
		{"KubeletDown", guard.Evidence{Process: guard.Read(now, guard.Process{})}, false}, // it may be in another PID namespace
		{"KubeletDown", guard.Evidence{Process: guard.NotKnown[guard.Process](now, "no rights")}, false},
		{"KubeletDown", guard.Evidence{Process: guard.Read(now, guard.Process{Exists: true})}, false},
		{"KubeletPodStartUpLatencyHigh", guard.Evidence{Starts: guard.Read(now, 2*time.Minute)}, true},
		{"KubeletPodStartUpLatencyHigh", guard.Evidence{Starts: guard.Read(now, 2*time.Second)}, false},
		{"KubeletServerCertificateExpiration", guard.Evidence{Certificates: guard.Read(now, guard.Certificates{ServerExpires: now.Add(time.Hour)})}, true},
		{"KubeletServerCertificateExpiration", guard.Evidence{Certificates: guard.Read(now, guard.Certificates{})}, false},
		{"KubeletCertificateRenewalErrors", guard.Evidence{Certificates: guard.Read(now, guard.Certificates{RenewalErrors: 2})}, true},
		{"KubeletCertificateRenewalErrors", guard.Evidence{Certificates: guard.Read(now, guard.Certificates{})}, false},
		{"KubeletPlegDurationHigh", guard.Evidence{PLEG: guard.Read(now, guard.PLEG{Relist: 11 * time.Second})}, true},
		{"KubeletPlegDurationHigh", guard.Evidence{PLEG: guard.Read(now, guard.PLEG{Relist: time.Second})}, false},
		{"KubeletPlegDurationHigh", guard.Evidence{}, false},
		{"KubeletRuntimeErrors", guard.Evidence{Operations: guard.Read(now, guard.Operations{Count: 10, Errors: 1})}, true},
		{"KubeletRuntimeErrors", guard.Evidence{Operations: guard.Read(now, guard.Operations{})}, false},
		{"KubeletClientCertificateExpiration", guard.Evidence{Certificate: guard.Read(now, now.Add(24*time.Hour))}, true},
		{"KubeletClientCertificateExpiration", guard.Evidence{}, false},
	} {
		s := newStage(ruleset.Pack(), now)
		s.core.source.Guard = &watchman{c.evidence}
		if err := s.take(scene.Step{What: map[string]any{"node": map[string]any{"name": "n"}}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Advance(now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := s.core.alerts[identity{rule: c.rule}] != nil; got != c.fires {
			t.Errorf("%s with %+v: got %v", c.rule, c.evidence, got)
		}
	}
}
