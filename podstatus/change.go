package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Change is one change of the status of a pod on its node.
type Change struct {
	UID             types.UID
	Namespace, Name string
	// Created is the creation time of the pod, zero if unknown.
	Created time.Time
	// Old is the status before the change: the node's, or the API's if the node had none (then
	// First is set). New is the status after the change. Both are immutable.
	Old, New *v1.PodStatus
	First    bool
	// Version grows with each change of a pod.
	Version uint64
	At      time.Time
	// By is the kind of call that made the change, such as "SetPodStatus".
	By string
	// Finished: the pod has ended for good, no container runs.
	Finished bool
}

// Undelivered is a failed attempt to deliver the status of a pod to the API server.
type Undelivered struct {
	UID     types.UID
	Version uint64
	At      time.Time
	// Tries counts the failed attempts, including this one.
	Tries int
	// Err is the error of the API server, or nil if the pod waits for something else: see Waits.
	Err    error
	Reason string // of Err, in a word
	Waits  string
	// Writer is another writer that changes the status back, Rounds how often.
	Writer string
	Rounds int
}
