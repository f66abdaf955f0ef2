// Package apifacts collects the API server's facts of a pod, for package explain: the pod, its last
// warnings and the lease of its node. It works for the pods of any node.
package apifacts
