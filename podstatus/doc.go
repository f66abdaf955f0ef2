// Package podstatus holds the rules of pod status: a set of pure functions over
// [k8s.io/api/core/v1.Pod] and [k8s.io/api/core/v1.PodStatus] that decide as the
// kubelet decides, rule by rule.
//
// A status travels through the package in this order:
//
//	facts ──► Generate ──┐
//	                     ├─► Next ──► CheckTransitions ──► (cache) ──► Merge ──► Patch ──► API server
//	part ───► Complete ──┘   times,   may it follow?                   with the   what to
//	                         order, cuts                               API's own  send
//
// and the API's answer comes back through NeedsReconcile and Deletable.
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
// The cached status is what this node says, the API status is what the API server
// holds. A condition type is owned (only the node writes it), shared (DisruptionTarget)
// or foreign (never touched). Rule names in comments and tests (T3, C9, X5, …) are
// explained in docs/rules.md.
package podstatus
