package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Change is a step of the status of a pod on its node.
type Change struct {
	UID             types.UID
	Namespace, Name string
	// Created is the creation time of the pod, zero if it is not known.
	Created time.Time
	// Old is what the step starts from: the status that the node had, or the API's if the node had
	// none (then First is set). Both are never changed again.
	Old, New *v1.PodStatus
	First    bool
	// Version grows with each step of a pod.
	Version uint64
	At      time.Time
	// By is the kind of call that made it, such as "SetPodStatus".
	By string
	// Finished: the pod has ended for good, nothing of it runs.
	Finished bool
}

// Undelivered is a try to deliver the status of a pod to the API server that has not succeeded.
type Undelivered struct {
	UID     types.UID
	Version uint64
	At      time.Time
	// Tries counts the tries without success, this one included.
	Tries int
	// Err is the answer of the API server, nil if the pod waits for something else: Waits.
	Err    error
	Reason string // of Err, in a word
	Waits  string
	// Writer is another writer that changes the status back, Rounds how often.
	Writer string
	Rounds int
}
