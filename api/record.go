package api

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Record is one thing that happened to a pod or to the node.
type Record struct {
	Seq      uint64    `json:"seq"`
	Observed time.Time `json:"observed"`
	// Accepted is when the API server took it; nil: not yet, or there was nothing to take.
	Accepted  *time.Time `json:"accepted,omitempty"`
	Kind      string     `json:"kind"`
	Subject   string     `json:"subject,omitempty"`
	Container string     `json:"container,omitempty"`
	From      string     `json:"from,omitempty"`
	To        string     `json:"to"`
	Reason    string     `json:"reason,omitempty"`
	Message   string     `json:"message,omitempty"`
}

// PodHistory is what happened to one pod, the oldest first.
type PodHistory struct {
	UID       types.UID
	Namespace string
	Name      string
	Created   time.Time
	Gone      *time.Time
	Records   []Record
}
