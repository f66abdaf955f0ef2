// Package podrules implements the rules of pod status for the status manager and for package
// podstatus: pure functions that decide as the kubelet decides, rule by rule.
//
// A status travels through the package in this order:
//
//	Generate, Complete ──► Next ──► CheckTransitions ──► (cache) ──► Merge ──► Patch ──► API server
//	                       times,   may it follow?                   with the   what to
//	                       order, cuts                               API's own  send
//
// The API's answer comes back through NeedsReconcile and Deletable. The cached status is the status that
// this node reports, the API status is the status that the API server holds. The contract of package
// podstatus applies here too, and the tests of package podstatus cover this package.
package podrules
