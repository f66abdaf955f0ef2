// Package fit decides whether a pod fits on a node, as the kubelet decides it at admission,
// and which pods have to leave for a critical one that does not:
//
//	rejection := fit.Check(node, pod, active)           // nil: the pod may run
//	victims := fit.Victims(pod, active, rejection.Shortage) // nil: no choice makes room
//
// Active are the other pods of the node that take room, with the resources that they were
// admitted with, which differ from those of the spec while a resize is pending.
//
// All functions are pure, write to nothing that they are given, and may be called from any
// goroutine.
package fit
