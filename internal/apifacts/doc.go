// Package apifacts collects what the API server knows of a pod, for package explain: the pod,
// its last warnings and the lease of its node. It works for the pods of any node.
package apifacts
