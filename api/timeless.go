package api

import (
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/guard/monitor"
	"github.com/statusd/statusd/observe"
)

// A side is asked again and again. That it has said the same once more is no change, so fingerprints
// leave out when it did.

func timelessSides(sides map[observe.Side]observe.Answer) map[observe.Side]observe.Answer {
	list := map[observe.Side]observe.Answer{}
	for side, a := range sides {
		a.At = time.Time{}
		list[side] = a
	}
	return list
}

func timelessDifferences(differences []observe.Difference) []observe.Difference {
	list := append([]observe.Difference(nil), differences...)
	for i := range list {
		evidence := append([]observe.Evidence(nil), list[i].Evidence...)
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

func timelessPictures(pictures []observe.Picture) []observe.Picture {
	list := append([]observe.Picture(nil), pictures...)
	for i := range list {
		list[i].At = time.Time{}
	}
	return list
}

// timelessLogs leaves out how many lines were read: a log that grows without a problem is no change.
func timelessLogs(r *monitor.Report) *monitor.Report {
	if r == nil {
		return nil
	}
	report := *r
	report.Sources = append([]monitor.Source(nil), report.Sources...)
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
