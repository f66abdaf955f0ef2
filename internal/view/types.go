package view

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/load"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/podstatus"
)

// Freshness is how far the API server knows the status of a pod.
type Freshness struct {
	podstatus.Delivery
	// LagSeconds is how long ago the first change was made that the API server does not know, 0 if it
	// knows everything.
	LagSeconds float64 `json:"lagSeconds"`
}

// PodSummary is one row of a list of pods.
type PodSummary struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Static pods come from a manifest on the node.
	Static bool `json:"static,omitempty"`
	// Gone is when the pod went, nil if it has not gone.
	Gone    *time.Time    `json:"gone,omitempty"`
	Created *time.Time    `json:"created,omitempty"`
	Phase   v1.PodPhase   `json:"phase"`
	State   explain.State `json:"state"`
	// Since is when the pod came into the state.
	Since *time.Time `json:"since,omitempty"`
	// Status is what kubectl shows in its column STATUS.
	Status string `json:"status"`
	// Ready of Containers are ready, as in kubectl's column READY.
	Ready       int        `json:"ready"`
	Containers  int        `json:"containers"`
	Restarts    int32      `json:"restarts"`
	LastRestart *time.Time `json:"lastRestart,omitempty"`
	IP          string     `json:"ip,omitempty"`
	// Why is the explanation as a sentence.
	Why string `json:"why"`
	// Brief is the cause in a few words, the deepest first; empty for a pod that serves.
	Brief    string    `json:"brief,omitempty"`
	Delivery Freshness `json:"delivery"`
	// Drift counts the differences that last longer than news takes, Alerts the alerts that fire and
	// are not silenced.
	Drift  int `json:"drift,omitempty"`
	Alerts int `json:"alerts,omitempty"`
}

// PodList is the answer of /apis/v1/pods.
type PodList struct {
	// Revision is where a watch goes on from this list.
	Revision string       `json:"revision"`
	Items    []PodSummary `json:"items"`
}

// PodDetail is everything that is known of one pod.
type PodDetail struct {
	PodSummary
	Explanation      explain.Explanation `json:"explanation"`
	ContainerDetails []ContainerDetail   `json:"containerDetails"`
	// History is what happened, the oldest first.
	History []Record `json:"history"`
	// Pod is the pod with the status that the node reports, and of its spec only the outline. It is
	// nil if the pod is gone.
	Pod *v1.Pod `json:"pod,omitempty"`
	// Annotations are the pod's annotations. Alert rules read them; they are not served, since they may have secrets.
	Annotations map[string]string `json:"-"`
	// Differences are the differences between the API's report and the other sides, including
	// differences that may still be in transit; Pictures are the pod as each side reports it.
	Differences []audit.Difference `json:"differences,omitempty"`
	Pictures    []audit.Picture    `json:"pictures,omitempty"`
	// AlertDetails are the alerts of the pod and of its containers, firing ones first.
	AlertDetails []alert.Alert `json:"alertDetails,omitempty"`
	// Load is the usage of the pod, nil if unknown. Its changes cause no event of a watch.
	Load *load.PodLoad `json:"load,omitempty"`
	// LogsServed: the logs of its containers can be read, as [ContainerLog].
	LogsServed bool `json:"logsServed,omitempty"`
}

// ContainerLog is the end of the log of a run of a container.
type ContainerLog struct {
	Container string `json:"container"`
	Previous  bool   `json:"previous,omitempty"`
	// Lines are the last ones, the oldest first, without control characters and without what looks like a secret.
	Lines []string `json:"lines"`
}

// ContainerKind is what a container is in its pod.
type ContainerKind string

// The kinds of containers.
const (
	KindInit    ContainerKind = "init"
	KindSidecar ContainerKind = "sidecar"
	KindMain    ContainerKind = "main"
)

// ContainerState is what a container is in.
type ContainerState string

// The states of containers.
const (
	ContainerWaiting    ContainerState = "waiting"
	ContainerRunning    ContainerState = "running"
	ContainerTerminated ContainerState = "terminated"
)

// ContainerDetail is everything that is known of one container.
type ContainerDetail struct {
	Name    string         `json:"name"`
	Kind    ContainerKind  `json:"kind"`
	Image   string         `json:"image"`
	State   ContainerState `json:"state"`
	Reason  string         `json:"reason,omitempty"`
	Message string         `json:"message,omitempty"`
	// Since is when the container started or ended.
	Since    *time.Time `json:"since,omitempty"`
	Ready    bool       `json:"ready"`
	Started  bool       `json:"started"`
	Restarts int32      `json:"restarts"`
	// ExitCode is the exit code of the last ended run.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// NextStart is when the container is started again at the earliest.
	NextStart *time.Time    `json:"nextStart,omitempty"`
	Probes    []ProbeDetail `json:"probes,omitempty"`
}

// ProbeKind is what a probe decides.
type ProbeKind string

// The kinds of probes.
const (
	ProbeStartup   ProbeKind = "startup"
	ProbeReadiness ProbeKind = "readiness"
	ProbeLiveness  ProbeKind = "liveness"
)

// ProbeDetail is what the probes of one kind have found in the current run of a container.
type ProbeDetail struct {
	Kind ProbeKind `json:"kind"`
	// OK is the last result, nil before the first result.
	OK *bool `json:"ok,omitempty"`
	podstatus.Probe
}

// NodeDetail is everything that is known of the node.
type NodeDetail struct {
	Name       string             `json:"name"`
	UID        types.UID          `json:"uid,omitempty"`
	Version    string             `json:"version"`
	Runtime    string             `json:"runtime"`
	Conditions []v1.NodeCondition `json:"conditions"`
	Addresses  []v1.NodeAddress   `json:"addresses"`
	// Requested is what the pods that have not ended request of Allocatable.
	Capacity    v1.ResourceList `json:"capacity"`
	Allocatable v1.ResourceList `json:"allocatable"`
	Requested   v1.ResourceList `json:"requested"`
	// Pods counts the pods by state.
	Pods     map[explain.State]int `json:"pods"`
	Delivery NodeDelivery          `json:"delivery"`
	// Problems are the problems of the node, as clauses.
	Problems []string `json:"problems"`
	History  []Record `json:"history"`
	// Sides are the sides of the audit, and whether they answer; empty without an audit.
	Sides map[audit.Side]audit.Answer `json:"sides,omitempty"`
	// Drift counts the differences that are drift, including differences of pods. Differences are the
	// differences of the node, and of pods that it does not list, at most MaxShown.
	Drift       int                `json:"drift,omitempty"`
	Differences []audit.Difference `json:"differences,omitempty"`
	// Kubelet is how healthy the kubelet is, nil if it is not guarded.
	Kubelet *guard.Report `json:"kubelet,omitempty"`
	// Load is how much of its resources the node uses, with at most MaxShown pods; nil if that is not known.
	// That it changes is no event of a watch.
	Load *load.Load `json:"load,omitempty"`
	// Logs is what the logs of kernel, kubelet and runtime amount to; nil if they are not read.
	Logs *logs.Report `json:"logs,omitempty"`
	// Firing counts the alerts that fire and are not silenced. Alerts are all that fire, those of pods
	// as well, the most severe first, at most MaxShown; nil if there are no rules.
	Firing int           `json:"firing,omitempty"`
	Alerts []alert.Alert `json:"alerts,omitzero"`
}

// MaxShown is how many differences and alerts a NodeDetail shows. The lists of all of them are answers
// of their own.
const MaxShown = 100

// NodeDelivery is how far the API server knows the node and its pods.
type NodeDelivery struct {
	// Pending counts the pods with changes that the API server has not received. The oldest change was
	// made OldestSeconds ago.
	Pending       int     `json:"pending"`
	OldestSeconds float64 `json:"oldestSeconds"`
	LastError     string  `json:"lastError,omitempty"`
	// LeaseRenewed is when the lease of the Node was last renewed.
	LeaseRenewed *time.Time `json:"leaseRenewed,omitempty"`
	// UnreachableSince is since when the API server has not been reached.
	UnreachableSince *time.Time `json:"unreachableSince,omitempty"`
}

// GonePod is the data of a watch's gone event.
type GonePod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}
