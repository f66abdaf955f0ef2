package audit

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of false report in the API.
type Kind string

// The kinds of differences.
const (
	APIBehindKubelet        Kind = "APIBehindKubelet"        // the kubelet knows a newer status than the API has
	KubeletBehindRuntime    Kind = "KubeletBehindRuntime"    // the runtime has another state of a container than the kubelet says
	ForeignWriter           Kind = "ForeignWriter"           // another writer has changed what the kubelet owns
	ContainerWithoutPod     Kind = "ContainerWithoutPod"     // the runtime runs a container of a pod that neither API nor kubelet has
	RunningWithoutContainer Kind = "RunningWithoutContainer" // the API says Running, the runtime has no container
	StuckTerminating        Kind = "StuckTerminating"        // deleted longer ago than its grace; Holds says what holds it
	OrphanedPodDirectory    Kind = "OrphanedPodDirectory"    // a directory of a pod that does not exist any more
	ReadyOnDeadNode         Kind = "ReadyOnDeadNode"         // Ready, though its node is gone
	UnreportedRestart       Kind = "UnreportedRestart"       // the runtime has restarted a container more often than the API says
	MirrorWithoutManifest   Kind = "MirrorWithoutManifest"   // a mirror pod whose static pod has no manifest
	LeaseStale              Kind = "LeaseStale"              // the lease of the node is not renewed
	ClockSkew               Kind = "ClockSkew"               // the clocks of machine and server are apart
	FrozenContainer         Kind = "FrozenContainer"         // the API says Running, and the control group of the pod is frozen
	TwoKubelets             Kind = "TwoKubelets"             // another machine's kubelet reports under the name of this node
	APIRestored             Kind = "APIRestored"             // the API was restored from a backup, and the kubelet has not started since
)

// Kinds are all kinds of differences.
func Kinds() []Kind {
	return []Kind{APIBehindKubelet, KubeletBehindRuntime, ForeignWriter, ContainerWithoutPod, RunningWithoutContainer, StuckTerminating,
		OrphanedPodDirectory, ReadyOnDeadNode, UnreportedRestart, MirrorWithoutManifest, LeaseStale, ClockSkew, FrozenContainer, TwoKubelets, APIRestored}
}

// Certainty is how sure a difference is.
type Certainty string

// The certainties.
const (
	Certain  Certainty = "certain"  // two sides that answer contradict each other
	Likely   Certainty = "likely"   // one side does not answer, the others leave little room
	Possible Certainty = "possible" // another explanation is as good
)

// Ref names a pod. The zero Ref is the node.
type Ref struct {
	UID       types.UID `json:"uid,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
}

// Evidence is one side's statement about a difference.
type Evidence struct {
	Side Side      `json:"side"`
	At   time.Time `json:"at"`
	// From is the queried source.
	From string `json:"from,omitempty"`
	Text string `json:"text"`
}

// Difference is one false report in the API.
type Difference struct {
	Kind Kind `json:"kind"`
	Pod  Ref  `json:"pod"`
	// Container is the name of the container, if it is about one.
	Container string `json:"container,omitempty"`
	// Subject distinguishes differences of a kind: the type of a condition, the path of a directory.
	Subject string `json:"subject,omitempty"`
	// Message states the difference in a sentence.
	Message string `json:"message"`
	// Since is when the report became false, as far as the facts show; Seen is when the difference was
	// first noticed.
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen"`
	// Drift: the difference has lasted longer than changes of its side usually take. Before that it is
	// no alarm.
	Drift     bool       `json:"drift"`
	Certainty Certainty  `json:"certainty"`
	Evidence  []Evidence `json:"evidence"`
	// Writer is the other writer, by its name in managedFields.
	Writer string `json:"writer,omitempty"`
	// Holds lists what blocks the deletion of a pod.
	Holds []string `json:"holds,omitempty"`
	// Do is the recommended action.
	Do string `json:"do"`
	// Repair: observe can repair it if it is allowed to.
	Repair bool `json:"repair,omitempty"`
}

// Report is the result of an audit.
type Report struct {
	At    time.Time       `json:"at"`
	Node  string          `json:"node"`
	Sides map[Side]Answer `json:"sides"`
	// NodeMissing: the API answers, and has no Node of this name. Then it has no pods of the node either, or false ones.
	NodeMissing bool `json:"nodeMissing,omitempty"`
	// Propagation is how long changes of a side take to arrive, as measured.
	Propagation map[Side]Propagation `json:"propagation"`
	// Differences are the current differences, the pods by name; only differences with Drift are an
	// alarm.
	Differences []Difference `json:"differences"`
}

// Propagation is how long changes take from one side to the next.
type Propagation struct {
	// Samples is how often it was measured.
	Samples int `json:"samples"`
	// Median and P99 are measured; Bound is how long a difference may last before it is drift.
	Median time.Duration `json:"median"`
	P99    time.Duration `json:"p99"`
	Bound  time.Duration `json:"bound"`
}

// Picture is a pod as one side reports it.
type Picture struct {
	Side Side `json:"side"`
	// Known is false if the side does not answer; then Err is the reason, and the other fields are
	// from its last answer.
	Known bool   `json:"known"`
	Err   string `json:"error,omitempty"`
	// Exists is false if the side does not have the pod.
	Exists     bool               `json:"exists"`
	At         time.Time          `json:"at,omitzero"`
	From       string             `json:"from,omitempty"`
	Phase      string             `json:"phase,omitempty"`
	Ready      string             `json:"ready,omitempty"` // True, False, Unknown
	Deleting   bool               `json:"deleting,omitempty"`
	Containers []PictureContainer `json:"containers,omitempty"`
	// Notes are the side's facts in addition to containers: a mounted volume, a control group with
	// processes.
	Notes []string `json:"notes,omitempty"`
}

// PictureContainer is a container as one side reports it.
type PictureContainer struct {
	Name     string    `json:"name"`
	ID       string    `json:"id,omitempty"`
	State    string    `json:"state"` // waiting, created, running, terminated, unknown
	Reason   string    `json:"reason,omitempty"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	Restarts int32     `json:"restarts"`
	Ready    *bool     `json:"ready,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Differs: it contradicts another side.
	Differs bool `json:"differs,omitempty"`
}
