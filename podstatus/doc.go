// Package podstatus computes pod statuses by the rules of the kubelet: a set of pure functions over
// [k8s.io/api/core/v1.Pod] and [k8s.io/api/core/v1.PodStatus].
//
//	facts ──► Generate ──┐
//	                     ├─► status.Manager.SetPodStatus ──► API server
//	part ───► Complete ──┘
//
// [Generate] makes a complete status from the facts of a runtime, [Complete] completes a partial status.
// The other functions are single rules: the phase of a pod from its containers, the conditions, whether a
// container restarts. Comparing, merging and patching statuses is the manager's and not part of this
// package.
//
// # Contract
//
// Time is an argument. There is no clock, context, logger, metric, lock or goroutine here, and
// nothing depends on the order of a map. No function modifies its arguments. A result may share
// memory with the arguments, unless the function's comment says otherwise: treat every status as
// immutable once it was passed on. All functions may be called from any goroutine.
//
// # Words
//
// A condition type is owned (only the node writes it), shared (DisruptionTarget)
// or foreign (never touched). Rule names in tests (T3, C9, X5, …) are
// explained in docs/reference/pod-status-rules.md.
package podstatus
