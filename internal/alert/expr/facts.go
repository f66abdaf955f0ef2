package expr

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/view"
)

// podFacts are what expressions read of a pod.
type podFacts struct {
	view.PodDetail
	reason, restartPolicy, ownerKind, ownerName string
	priorityClass, qosClass                     string
	started, readyAt, deletion                  time.Time
	finalizers                                  []string
	labels                                      map[string]string
	conditions                                  []condition
	containers                                  []containerFacts
}

type containerFacts struct {
	view.ContainerDetail
	pod        *podFacts
	lastReason string
	lastEnd    time.Time
}

// condition is a condition of a pod or a node.
type condition struct {
	kind, status, reason, message string
	since                         time.Time
}

func podFactsOf(d view.PodDetail) *podFacts {
	f := &podFacts{PodDetail: d, containers: make([]containerFacts, len(d.ContainerDetails))}
	for i := range d.ContainerDetails {
		f.containers[i].ContainerDetail, f.containers[i].pod = d.ContainerDetails[i], f
	}
	if d.Pod == nil {
		return f
	}
	pod := d.Pod
	f.reason, f.restartPolicy, f.labels, f.finalizers = pod.Status.Reason, string(pod.Spec.RestartPolicy), pod.Labels, pod.Finalizers
	f.priorityClass, f.qosClass = pod.Spec.PriorityClassName, string(pod.Status.QOSClass)
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			f.ownerKind, f.ownerName = owner.Kind, owner.Name
		}
	}
	if pod.Status.StartTime != nil {
		f.started = pod.Status.StartTime.Time
	}
	if pod.DeletionTimestamp != nil {
		f.deletion = pod.DeletionTimestamp.Time
	}
	f.conditions = podConditions(pod.Status.Conditions)
	for _, c := range f.conditions {
		if c.kind == string(v1.PodReady) && c.status == string(v1.ConditionTrue) {
			f.readyAt = c.since
		}
	}
	f.lastEnds(pod.Status.InitContainerStatuses)
	f.lastEnds(pod.Status.ContainerStatuses)
	return f
}

// lastEnds adds how the last runs of containers ended.
func (f *podFacts) lastEnds(statuses []v1.ContainerStatus) {
	for i := range statuses {
		end := cmp.Or(statuses[i].State.Terminated, statuses[i].LastTerminationState.Terminated)
		if end == nil {
			continue
		}
		for j := range f.containers {
			if f.containers[j].Name == statuses[i].Name {
				f.containers[j].lastReason, f.containers[j].lastEnd = end.Reason, end.FinishedAt.Time
			}
		}
	}
}

// causes are the codes of the deepest causes of the pod's state.
func (f *podFacts) causes() []string {
	var codes []string
	for _, c := range f.Explanation.Roots() {
		codes = append(codes, string(c.Code))
	}
	return codes
}

// nodeFacts are what expressions read of the node.
type nodeFacts struct {
	Node
	conditions   []condition
	pendingSince time.Time
}

func nodeFactsOf(n Node, now time.Time) *nodeFacts {
	f := &nodeFacts{Node: n, conditions: nodeConditions(n.Conditions)}
	if d := &n.NodeDetail; d.Delivery.OldestSeconds > 0 {
		f.pendingSince = now.Add(-time.Duration(d.Delivery.OldestSeconds * float64(time.Second)))
	}
	return f
}

// pressure are the conditions that are True and should not be.
func (f *nodeFacts) pressure() (list []string) {
	for _, c := range f.conditions {
		if strings.HasSuffix(c.kind, "Pressure") && c.status == string(v1.ConditionTrue) {
			list = append(list, c.kind)
		}
	}
	return list
}

func (f *nodeFacts) silent() (list []string) {
	for side, answer := range f.Sides {
		if answer.Err != "" {
			list = append(list, string(side))
		}
	}
	slices.Sort(list)
	return list
}

func quantities(resources v1.ResourceList) ref.Val {
	values := make(map[ref.Val]ref.Val, len(resources))
	for name, quantity := range resources {
		values[types.String(name)] = types.Double(quantity.AsApproximateFloat64())
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, values)
}

// KubeletFacts are numbers about a kubelet that its guard has read. Nil: not known.
type KubeletFacts struct {
	// Running: there is a process.
	Running *bool
	// PLEG is how long the kubelet takes to list the runtime's containers, PLEGLastSeen when it last began to.
	PLEG         *time.Duration
	PLEGLastSeen *time.Time
	// PodStart is how long pods take to start.
	PodStart *time.Duration
	// ClientCertificate and ServerCertificate are when the kubelet's certificates expire;
	// CertificateErrors counts the failed renewals since the last success.
	ClientCertificate, ServerCertificate *time.Time
	CertificateErrors                    *int
	// RuntimeErrors is the share of requests to the runtime that fail, 0 to 1.
	RuntimeErrors *float64
}

type kubeletFacts struct {
	report *guard.Report // nil: there is no guard
	KubeletFacts
}

func (f *kubeletFacts) health() guard.Health { return f.verdict().Health }

func (f *kubeletFacts) verdict() guard.Verdict {
	if f.report == nil {
		return guard.Verdict{}
	}
	return f.report.Verdict
}

// KubeletNumbers returns the numbers in the evidence of a guard.
func KubeletNumbers(e guard.Evidence) (f KubeletFacts) {
	if p := e.Process; p.Known && (p.Value.Exists || p.Value.Sure) { // a search that finds none proves nothing
		running := p.Value.Exists && !p.Value.Zombie
		f.Running = &running
	}
	if e.PLEG.Known {
		f.PLEG, f.PLEGLastSeen = &e.PLEG.Value.Relist, &e.PLEG.Value.LastSeen
	}
	if o := e.Operations; o.Known && o.Value.Count > 0 {
		share := float64(o.Value.Errors) / float64(o.Value.Count)
		f.RuntimeErrors = &share
	}
	if e.Certificate.Known {
		f.ClientCertificate = &e.Certificate.Value
	}
	if e.Starts.Known {
		f.PodStart = &e.Starts.Value
	}
	if c := e.Certificates; c.Known {
		f.CertificateErrors = &c.Value.RenewalErrors
		if f.ClientCertificate == nil {
			f.ClientCertificate = said(c.Value.ClientExpires)
		}
		f.ServerCertificate = said(c.Value.ServerExpires)
	}
	return f
}

// said is nil for a time of zero.
func said(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
