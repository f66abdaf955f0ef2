package view

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/load"
)

// Describe returns everything that is known of a pod, false if the node does not have it. Alerts may be nil, so that rules can use it.
func Describe(o Sources, uid types.UID) (PodDetail, bool) {
	p, ok := o.Source.Pod(uid)
	if !ok {
		return PodDetail{}, false
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	detail := Detail(p, RecordsOf(o.Source, p), o.Location)
	FindingsOf(o).Add(&detail)
	return detail, true
}

// DescribeNode returns everything that is known of the node. Pods, which is a sum over all pods, is
// left empty.
func DescribeNode(o Sources) NodeDetail {
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
		report := GuardReport(o.Guard)
		detail.Kubelet = &report
	}
	if o.Load != nil {
		load := WholeLoad(o.Load)
		load.Pods = load.Pods[:min(len(load.Pods), MaxShown)]
		detail.Load = &load
	}
	if p, ok := o.Alerts.(interface{ Problems() []string }); ok {
		detail.Problems = append(detail.Problems, p.Problems()...)
	}
	if o.Alerts != nil {
		detail.Alerts = []alert.Alert{}
		for _, a := range alert.Sorted(o.Alerts.Alerts()) {
			if a.Counts() {
				detail.Firing++
			}
			if a.State == alert.Firing && len(detail.Alerts) < MaxShown {
				detail.Alerts = append(detail.Alerts, a)
			}
		}
	}
	return detail
}

// listed reports whether a difference is of a pod that the node lists.
func listed(source Source, pod audit.Ref) bool {
	if pod.UID == "" {
		return false
	}
	_, ok := source.Pod(pod.UID)
	return ok
}

// Findings are what an audit and rules have found, by pod.
type Findings struct {
	audit       AuditSource
	load        LoadSource
	differences map[types.UID][]audit.Difference
	alerts      map[types.UID][]alert.Alert
}

func FindingsOf(o Sources) Findings {
	f := Findings{audit: o.Audit, load: o.Load}
	if o.Audit != nil {
		f.differences = map[types.UID][]audit.Difference{}
		for _, d := range o.Audit.Report().Differences {
			f.differences[d.Pod.UID] = append(f.differences[d.Pod.UID], d)
		}
	}
	if o.Alerts != nil {
		f.alerts = map[types.UID][]alert.Alert{}
		for _, a := range o.Alerts.Alerts() {
			f.alerts[a.UID] = append(f.alerts[a.UID], a)
		}
	}
	return f
}

// Count fills in the numbers of a row.
func (f Findings) Count(s *PodSummary) {
	s.Drift, s.Alerts = 0, 0
	for _, d := range f.differences[s.UID] {
		if d.Drift {
			s.Drift++
		}
	}
	for _, a := range f.alerts[s.UID] {
		if a.Counts() {
			s.Alerts++
		}
	}
}

// Add fills in the findings of a pod.
func (f Findings) Add(d *PodDetail) {
	f.Count(&d.PodSummary)
	d.Differences, d.AlertDetails = f.differences[d.UID], alert.Sorted(f.alerts[d.UID])
	if f.audit != nil {
		d.Pictures = f.audit.Pictures(d.UID)
	}
	if f.load != nil {
		d.Load = podLoad(f.load.Load().Pods, d.UID)
	}
}

func podLoad(pods []load.PodLoad, uid types.UID) *load.PodLoad {
	i := slices.IndexFunc(pods, func(p load.PodLoad) bool { return p.UID == uid })
	if i < 0 {
		return nil
	}
	return &pods[i]
}

// RecordsOf returns the history of a pod, without the history of an earlier pod of the same name.
func RecordsOf(source Source, p Pod) []Record {
	pod := p.Facts.Pod
	history, ok := source.History(pod.Namespace, pod.Name)
	if !ok || history.UID != pod.UID {
		return nil
	}
	return history.Records
}

// complete fills in what a source leaves empty: lists are not null.
func (n *NodeDetail) complete(records []Record) {
	n.Pods = map[explain.State]int{}
	n.History = append([]Record{}, records...)
	n.Conditions = append([]v1.NodeCondition{}, n.Conditions...)
	n.Addresses = append([]v1.NodeAddress{}, n.Addresses...)
	n.Problems = append([]string{}, n.Problems...)
	for _, list := range []*v1.ResourceList{&n.Capacity, &n.Allocatable, &n.Requested} {
		if *list == nil {
			*list = v1.ResourceList{}
		}
	}
}

// GuardReport returns a report whose lists are not null.
func GuardReport(source GuardSource) guard.Report {
	report := source.Report()
	report.Reasons = append([]guard.Reason{}, report.Reasons...)
	report.Evidence = append([]guard.Item{}, report.Evidence...)
	report.Restarts = append([]guard.Restart{}, report.Restarts...)
	return report
}

// WholeLoad returns a load whose lists are not null.
func WholeLoad(source LoadSource) load.Load {
	l := source.Load()
	l.Parts = append([]load.LoadPart{}, l.Parts...)
	l.Disks = append([]load.DiskLoad{}, l.Disks...)
	l.Network = append([]load.NetworkLoad{}, l.Network...)
	l.Pods = append([]load.PodLoad{}, l.Pods...)
	return l
}
