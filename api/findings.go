package api

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/observe"
)

// AlertList is the answer of /apis/v1/alerts.
type AlertList struct {
	// Items are in the order in which they are shown: those that fire first, the most severe first.
	Items []Alert `json:"items"`
}

// SilenceList is the answer of /apis/v1/silences.
type SilenceList struct {
	Items []Silence `json:"items"`
}

// absent answers that the node does not have what was asked for.
func absent(w http.ResponseWriter, why string) {
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "%s", why)
}

func (s *Server) serveAudit(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Audit == nil {
		absent(w, "there is no audit of this node: statusd observe makes one, beside a kubelet")
		return
	}
	report := s.options.Audit.Report()
	report.Differences = append([]observe.Difference{}, report.Differences...)
	if report.Sides == nil {
		report.Sides = map[observe.Side]observe.Answer{}
	}
	if report.Propagation == nil {
		report.Propagation = map[observe.Side]observe.Propagation{}
	}
	answer(w, http.StatusOK, report)
}

func (s *Server) serveGuard(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Guard == nil {
		absent(w, "no kubelet is guarded on this node")
		return
	}
	answer(w, http.StatusOK, guardReport(s.options.Guard))
}

// guardReport is a report whose lists are not null.
func guardReport(source GuardSource) guard.Report {
	report := source.Report()
	report.Reasons = append([]guard.Reason{}, report.Reasons...)
	report.Evidence = append([]guard.Item{}, report.Evidence...)
	report.Restarts = append([]guard.Restart{}, report.Restarts...)
	return report
}

func (s *Server) serveLoad(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Load == nil {
		absent(w, "how much of its resources this node uses is not read")
		return
	}
	answer(w, http.StatusOK, wholeLoad(s.options.Load))
}

// wholeLoad is a load whose lists are not null.
func wholeLoad(source LoadSource) guard.Load {
	load := source.Load()
	load.Parts = append([]guard.LoadPart{}, load.Parts...)
	load.Disks = append([]guard.DiskLoad{}, load.Disks...)
	load.Network = append([]guard.NetworkLoad{}, load.Network...)
	load.Pods = append([]guard.PodLoad{}, load.Pods...)
	return load
}

func (s *Server) serveAlerts(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Alerts == nil {
		absent(w, noRules)
		return
	}
	answer(w, http.StatusOK, AlertList{Items: append([]Alert{}, sortedAlerts(s.options.Alerts.Alerts())...)})
}

// noRules is why there are neither alerts nor silences.
const noRules = "there are no rules on this node, so there are no alerts"

func (s *Server) serveSilences(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	if s.options.Alerts == nil {
		absent(w, noRules)
		return
	}
	answer(w, http.StatusOK, SilenceList{Items: append([]Silence{}, s.options.Alerts.Silences()...)})
}
