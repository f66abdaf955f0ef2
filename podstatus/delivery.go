package podstatus

import "time"

// Delivery is how far the status of a pod has come from its node to the API server.
type Delivery struct {
	// Version is the newest change of the status, Accepted the newest that the API server took, at
	// AcceptedAt. If Version and Accepted are equal, the API server has everything.
	Version    uint64    `json:"version"`
	Accepted   uint64    `json:"accepted"`
	AcceptedAt time.Time `json:"acceptedAt,omitzero"`
	// Since is when the first change after Accepted was made.
	Since time.Time `json:"since,omitzero"`
	// Attempts counts the tries without success, Error is the last error, NextTry when the next is due.
	Attempts int       `json:"attempts,omitempty"`
	Error    string    `json:"error,omitempty"`
	NextTry  time.Time `json:"nextTry,omitzero"`
	// Held is what the change waits for on this node, empty if it waits for the API server.
	Held string `json:"held,omitempty"`
	// Refused are the fields that the API server refuses, such as "status.qosClass".
	Refused []string `json:"refused,omitempty"`
	// Writer is another writer that changes the status back, Rounds how often it has.
	Writer string `json:"writer,omitempty"`
	Rounds int    `json:"rounds,omitempty"`
}

// Probe is what the probes of one kind have found in the current run of a container.
type Probe struct {
	// Failures and Successes count the last equal results; one of them is 0. The first of them was
	// at Since.
	Failures  int       `json:"failures"`
	Successes int       `json:"successes"`
	Since     time.Time `json:"since,omitzero"`
	// Answer is the last answer, such as "connection refused", given at At.
	Answer string    `json:"answer,omitempty"`
	At     time.Time `json:"at,omitzero"`
	// NotBefore is when the first probe is due, if there was none yet.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// ContainerFacts are what a node agent knows of a container beyond its status.
type ContainerFacts struct {
	// NextStart is when the container is started at the earliest, zero if that is not put off.
	NextStart time.Time `json:"nextStart,omitzero"`
	// Hook is the lifecycle hook that runs, "postStart" or "preStop", since HookSince.
	Hook      string    `json:"hook,omitempty"`
	HookSince time.Time `json:"hookSince,omitzero"`
	// KillAt is when the container is killed if it has not stopped by then; zero: it is not being stopped.
	KillAt time.Time `json:"killAt,omitzero"`
}
