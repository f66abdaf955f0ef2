package podstatus

import "time"

// Delivery is the progress of the status of a pod from its node to the API server.
type Delivery struct {
	// Version is the newest version of the status, Accepted the newest version that the API server
	// has accepted, at AcceptedAt. If Version and Accepted are equal, the API server has
	// everything.
	Version    uint64    `json:"version"`
	Accepted   uint64    `json:"accepted"`
	AcceptedAt time.Time `json:"acceptedAt,omitzero"`
	// Since is when the first change after Accepted was made.
	Since time.Time `json:"since,omitzero"`
	// Attempts counts the failed attempts, Error is the last error, NextTry when the next attempt is
	// due.
	Attempts int       `json:"attempts,omitempty"`
	Error    string    `json:"error,omitempty"`
	NextTry  time.Time `json:"nextTry,omitzero"`
	// Held is what the change waits for on this node, empty if the change waits for the API server.
	Held string `json:"held,omitempty"`
	// Refused are the fields that the API server refuses, such as "status.qosClass".
	Refused []string `json:"refused,omitempty"`
	// Writer is another writer that changes the status back, Rounds how often.
	Writer string `json:"writer,omitempty"`
	Rounds int    `json:"rounds,omitempty"`
}

// Probe is the result of the probes of one kind in the current run of a container.
type Probe struct {
	// Failures and Successes count the consecutive equal results up to now; one of them is 0. Since
	// is the time of the first of these results.
	Failures  int       `json:"failures"`
	Successes int       `json:"successes"`
	Since     time.Time `json:"since,omitzero"`
	// Answer is the last answer, such as "connection refused", given at At.
	Answer string    `json:"answer,omitempty"`
	At     time.Time `json:"at,omitzero"`
	// NotBefore is when the first probe is due, if the container was not probed yet.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// ContainerFacts are the facts of a node agent about a container beyond its status.
type ContainerFacts struct {
	// NextStart is the earliest time of the next start of the container, zero if the start is not
	// delayed.
	NextStart time.Time `json:"nextStart,omitzero"`
	// Hook is the lifecycle hook that runs, "postStart" or "preStop", since HookSince.
	Hook      string    `json:"hook,omitempty"`
	HookSince time.Time `json:"hookSince,omitzero"`
	// KillAt is when the container is killed if it has not stopped by then; zero if the container is not
	// being stopped.
	KillAt time.Time `json:"killAt,omitzero"`
}
