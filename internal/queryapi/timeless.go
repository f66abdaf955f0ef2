package queryapi

import (
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/logs"
)

// A side is queried periodically. The same answer again is no change, so fingerprints leave out its
// time.

func timelessSides(sides map[audit.Side]audit.Answer) map[audit.Side]audit.Answer {
	list := map[audit.Side]audit.Answer{}
	for side, a := range sides {
		a.At = time.Time{}
		list[side] = a
	}
	return list
}

func timelessDifferences(differences []audit.Difference) []audit.Difference {
	list := append([]audit.Difference(nil), differences...)
	for i := range list {
		evidence := append([]audit.Evidence(nil), list[i].Evidence...)
		for j := range evidence {
			evidence[j].At = time.Time{}
		}
		list[i].Evidence = evidence
	}
	return list
}

func timelessUntruths(untruths []explain.Untruth) []explain.Untruth {
	list := append([]explain.Untruth(nil), untruths...)
	for i := range list {
		said := append([]explain.Statement(nil), list[i].Evidence...)
		for j := range said {
			said[j].At = time.Time{}
		}
		list[i].Evidence = said
	}
	return list
}

func timelessPictures(pictures []audit.Picture) []audit.Picture {
	list := append([]audit.Picture(nil), pictures...)
	for i := range list {
		list[i].At = time.Time{}
	}
	return list
}

// timelessLogs leaves out how many lines were read: a log that grows without a problem is no change.
func timelessLogs(r *logs.Report) *logs.Report {
	if r == nil {
		return nil
	}
	report := *r
	report.Sources = append([]logs.Source(nil), report.Sources...)
	for i := range report.Sources {
		report.Sources[i].Lines, report.Sources[i].Behind = 0, 0
	}
	return &report
}

func timelessReport(r *guard.Report) *guard.Report {
	if r == nil {
		return nil
	}
	report := *r
	report.At = time.Time{}
	report.Evidence = append([]guard.Item(nil), report.Evidence...)
	for i := range report.Evidence {
		report.Evidence[i].At = time.Time{}
	}
	return &report
}
