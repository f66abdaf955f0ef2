// Package fleet reads the overviews of all nodes of a cluster: those that run statusd observe answer through the API
// server's proxy to their pods, whether their kubelet works or not. A node whose observer does not answer is in the result
// with the reason, and with the conditions that its Node has.
//
// [Gather] asks a bounded number of observers at a time, each for a bounded time, and asks no more of them once its context
// has ended. The result is sorted by what is worst.
package fleet
