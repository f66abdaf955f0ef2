package api

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/observe"
)

// Describe returns everything that is known of a pod, false if the node does not have it. It is what a
// [Server] with these options answers. Alerts may be nil, so that rules can use it.
func Describe(o Options, uid types.UID) (PodDetail, bool) {
	p, ok := o.Source.Pod(uid)
	if !ok {
		return PodDetail{}, false
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	detail := describe(p, recordsOf(o.Source, p), o.Location)
	findingsOf(o).add(&detail)
	return detail, true
}

// DescribeNode returns everything that is known of the node. Pods, which is a sum over all pods, is
// left empty.
func DescribeNode(o Options) NodeDetail {
	detail := o.Source.Node()
	history, _ := o.Source.History("", "")
	detail.complete(history.Records)
	if o.Audit != nil {
		report := o.Audit.Report()
		detail.Sides = report.Sides
		for _, d := range report.Differences {
			if d.Drift {
				detail.Drift++
			}
			if len(detail.Differences) < MaxShown && !listed(o.Source, d.Pod) {
				detail.Differences = append(detail.Differences, d)
			}
		}
	}
	if o.Guard != nil {
		report := guardReport(o.Guard)
		detail.Kubelet = &report
	}
	if o.Load != nil {
		load := wholeLoad(o.Load)
		load.Pods = load.Pods[:min(len(load.Pods), MaxShown)]
		detail.Load = &load
	}
	if o.Alerts != nil {
		detail.Alerts = []Alert{}
		for _, a := range sortedAlerts(o.Alerts.Alerts()) {
			if a.counts() {
				detail.Firing++
			}
			if a.State == AlertFiring && len(detail.Alerts) < MaxShown {
				detail.Alerts = append(detail.Alerts, a)
			}
		}
	}
	return detail
}

// listed reports whether a difference is of a pod that the node lists.
func listed(source Source, pod observe.Ref) bool {
	if pod.UID == "" {
		return false
	}
	_, ok := source.Pod(pod.UID)
	return ok
}

// findings are what an audit and rules have found, by pod.
type findings struct {
	audit       AuditSource
	load        LoadSource
	differences map[types.UID][]observe.Difference
	alerts      map[types.UID][]Alert
}

func findingsOf(o Options) findings {
	f := findings{audit: o.Audit, load: o.Load}
	if o.Audit != nil {
		f.differences = map[types.UID][]observe.Difference{}
		for _, d := range o.Audit.Report().Differences {
			f.differences[d.Pod.UID] = append(f.differences[d.Pod.UID], d)
		}
	}
	if o.Alerts != nil {
		f.alerts = map[types.UID][]Alert{}
		for _, a := range o.Alerts.Alerts() {
			f.alerts[a.UID] = append(f.alerts[a.UID], a)
		}
	}
	return f
}

// count fills in the numbers of a row.
func (f findings) count(s *PodSummary) {
	s.Drift, s.Alerts = 0, 0
	for _, d := range f.differences[s.UID] {
		if d.Drift {
			s.Drift++
		}
	}
	for _, a := range f.alerts[s.UID] {
		if a.counts() {
			s.Alerts++
		}
	}
}

// add fills in what was found of a pod.
func (f findings) add(d *PodDetail) {
	f.count(&d.PodSummary)
	d.Differences, d.AlertDetails = f.differences[d.UID], sortedAlerts(f.alerts[d.UID])
	if f.audit != nil {
		d.Pictures = f.audit.Pictures(d.UID)
	}
	if f.load != nil {
		d.Load = podLoad(f.load.Load().Pods, d.UID)
	}
}

func podLoad(pods []guard.PodLoad, uid types.UID) *guard.PodLoad {
	i := slices.IndexFunc(pods, func(p guard.PodLoad) bool { return p.UID == uid })
	if i < 0 {
		return nil
	}
	return &pods[i]
}

// counts reports whether an alert is one that someone must look at.
func (a *Alert) counts() bool { return a.State == AlertFiring && a.Silenced == "" }

// sortedAlerts are alerts in the order in which they are shown: those that fire first, the most severe
// first, the oldest first.
func sortedAlerts(alerts []Alert) []Alert {
	sorted := slices.Clone(alerts)
	slices.SortStableFunc(sorted, func(a, b Alert) int {
		return cmp.Or(
			cmp.Compare(rank(a.State, AlertFiring, AlertPending, AlertResolved), rank(b.State, AlertFiring, AlertPending, AlertResolved)),
			cmp.Compare(rank(a.Severity, "critical", "warning", "info"), rank(b.Severity, "critical", "warning", "info")),
			a.Since.Compare(b.Since), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Fingerprint, b.Fingerprint),
		)
	})
	return sorted
}

// rank is the place of a value in an order; one that is not in it comes last.
func rank[T comparable](value T, order ...T) int {
	if i := slices.Index(order, value); i >= 0 {
		return i
	}
	return len(order)
}
