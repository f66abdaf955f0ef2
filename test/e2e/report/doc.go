// Package report makes tables of what Ginkgo reports about a run of Kubernetes' end-to-end specs: which passed and failed on
// an agent, why those that failed did, and where two agents differ.
package report
