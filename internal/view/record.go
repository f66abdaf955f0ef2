package view

import "github.com/statusd/statusd/internal/history"

// Record is one thing that happened to a pod or to the node.
type Record = history.Record

// PodHistory is what happened to one pod, the oldest first.
type PodHistory = history.Pod
