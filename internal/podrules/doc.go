// Package podrules holds the rules of pod status that the manager goes by, and that package podstatus
// makes statuses with: pure functions that decide as the kubelet decides, rule by rule.
//
// A status travels through the package in this order:
//
//	Generate, Complete ──► Next ──► CheckTransitions ──► (cache) ──► Merge ──► Patch ──► API server
//	                       times,   may it follow?                   with the   what to
//	                       order, cuts                               API's own  send
//
// and the API's answer comes back through NeedsReconcile and Deletable. The cached status is what this node
// says, the API status is what the API server holds. The contract is that of package podstatus, whose tests
// are those of this package too.
package podrules
