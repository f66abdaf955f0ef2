// Package report makes tables from Ginkgo reports of Kubernetes' end-to-end specs: passed and failed specs of an agent, the
// reasons for failures, and differences between two agents.
package report
