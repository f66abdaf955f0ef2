package queryapi

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/view"
)

// AlertList is the answer of /apis/v1/alerts.
type AlertList struct {
	// Items are in display order: firing ones first, the most severe first.
	Items []alert.Alert `json:"items"`
}

// SilenceList is the answer of /apis/v1/silences.
type SilenceList struct {
	Items []alert.Silence `json:"items"`
}

// absent answers that the node does not have the requested data.
func absent(w http.ResponseWriter, why string) {
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "%s", why)
}

func (s *Server) serveAudit(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Audit == nil {
		absent(w, "there is no audit of this node: statusd observe makes one, beside a kubelet")
		return
	}
	report := s.options.Audit.Report()
	report.Differences = append([]audit.Difference{}, report.Differences...)
	if report.Sides == nil {
		report.Sides = map[audit.Side]audit.Answer{}
	}
	if report.Propagation == nil {
		report.Propagation = map[audit.Side]audit.Propagation{}
	}
	answer(w, http.StatusOK, report)
}

func (s *Server) serveGuard(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Guard == nil {
		absent(w, "no kubelet is guarded on this node")
		return
	}
	answer(w, http.StatusOK, view.GuardReport(s.options.Guard))
}

func (s *Server) serveLoad(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Load == nil {
		absent(w, "how much of its resources this node uses is not read")
		return
	}
	answer(w, http.StatusOK, view.WholeLoad(s.options.Load))
}

func (s *Server) serveAlerts(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Alerts == nil {
		absent(w, noRules)
		return
	}
	answer(w, http.StatusOK, AlertList{Items: append([]alert.Alert{}, alert.Sorted(s.options.Alerts.Alerts())...)})
}

// noRules is why there are neither alerts nor silences.
const noRules = "there are no rules on this node, so there are no alerts"

func (s *Server) serveSilences(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Alerts == nil {
		absent(w, noRules)
		return
	}
	answer(w, http.StatusOK, SilenceList{Items: append([]alert.Silence{}, s.options.Alerts.Silences()...)})
}
