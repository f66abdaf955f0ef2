package history

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Kind is the kind of event of a record.
type Kind string

// The kinds of records.
const (
	KindPhase     Kind = "Phase"     // the phase of the pod; Reason and Message are the pod's
	KindCondition Kind = "Condition" // Subject is the type of the condition; From and To are its statuses
	KindContainer Kind = "Container" // a container is waiting, running or terminated
	KindReady     Kind = "Ready"     // a container has become ready or not ready
	KindRestart   Kind = "Restart"   // a container has been restarted; From and To are its restart counts
	KindProbe     Kind = "Probe"     // the verdict of a probe; Subject is startup, readiness or liveness
	KindHook      Kind = "Hook"      // a lifecycle hook; Subject is postStart or preStop
	KindAdmission Kind = "Admission" // the node has taken or rejected the pod
	KindDelivery  Kind = "Delivery"  // whether the API server has what the node reports
	KindDeletion  Kind = "Deletion"  // the pod is being deleted, has ended, is gone
	KindDrift     Kind = "Drift"     // what the API says was found to be untrue, true again, or repaired; Subject is the kind of difference
	KindAction    Kind = "Action"    // an action on an alert; Subject is the action, Reason the rule, To the result
	KindLog       Kind = "Log"       // a log line that indicates a problem; Subject is the writer, Reason the meaning, Message the line
	KindNode      Kind = "Node"      // the node itself: started, stopped, pressure, unreachable
)

// Record is one transition.
type Record struct {
	// Seq grows over all records of the node, also across restarts.
	Seq uint64 `json:"seq"`
	// Observed is when the node made or noticed the transition.
	Observed time.Time `json:"observed"`
	// Accepted is when the API server accepted the change. Nil: not yet, or the event is not sent,
	// such as the verdict of a probe.
	Accepted *time.Time `json:"accepted,omitempty"`
	Kind     Kind       `json:"kind"`
	// Subject is the subject of the record within its kind, such as the type of a condition.
	Subject string `json:"subject,omitempty"`
	// Container is the name of the container, if it is about one.
	Container string `json:"container,omitempty"`
	// From and To are the states before and after the change. Empty: the subject did not exist before,
	// or no longer exists.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Reason is a word in CamelCase, Message the cause in words. Both are cut to a bound.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Dropped counts the records of the same kind, subject and container that were dropped right
	// before this one to keep the bounds.
	Dropped int `json:"dropped,omitempty"`
}

// Ref names a pod. The zero Ref is the node.
type Ref struct {
	UID       types.UID `json:"uid,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
}

// Pod is the history of a pod.
type Pod struct {
	Ref `json:",inline"`
	// Created is the creation time of the pod, or when it was first seen.
	Created time.Time `json:"created"`
	// Gone is when the pod was removed from the node. It stays in the history for a while.
	Gone *time.Time `json:"gone,omitempty"`
	// Dropped counts all records that were dropped to keep the bounds.
	Dropped int `json:"dropped,omitempty"`
	// Records are in the order of Seq.
	Records []Record `json:"records,omitempty"`
}

// Event is an event of a watch: a record that is new or that the API server has now accepted, or a
// reset.
type Event struct {
	// Seq is where a watch continues after this event.
	Seq uint64 `json:"seq"`
	// Reset: the events since the given sequence number are no longer complete. All kept events
	// follow, as for a watch from 0. Pod and Record are empty.
	Reset  bool   `json:"reset,omitempty"`
	Pod    Ref    `json:"pod"`
	Record Record `json:"record"`
}
