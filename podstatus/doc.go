// Package podstatus makes pod statuses and answers questions about them, as the kubelet does: a set of
// pure functions over [k8s.io/api/core/v1.Pod] and [k8s.io/api/core/v1.PodStatus].
//
//	facts ──► Generate ──┐
//	                     ├─► status.Manager.SetPodStatus ──► API server
//	part ───► Complete ──┘
//
// [Generate] makes a complete status of what a runtime knows, [Complete] fills in one that is known in
// part. The other functions are single rules: the phase that containers add up to, the conditions, whether
// a container runs again. What the manager does with a status, its comparison, merge and patch, is not part
// of this package.
//
// # Contract
//
// Time is an argument. There is no clock, context, logger, metric, lock or goroutine
// here, and nothing depends on the order of a map. No function writes into what it is
// given. A result may share memory with the values it was computed from, unless its
// comment says that it does not: treat every status as immutable once it was handed on.
// All functions may be called from any goroutine.
//
// # Words
//
// A condition type is owned (only the node writes it), shared (DisruptionTarget)
// or foreign (never touched). Rule names in tests (T3, C9, X5, …) are
// explained in docs/reference/pod-status-rules.md.
package podstatus
