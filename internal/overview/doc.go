// Package overview reads the overviews of all nodes of a cluster. Nodes with statusd observe answer through the API
// server's proxy to their pods, whether their kubelet works or not. For a node whose observer does not answer, the result
// has the reason and the conditions of the Node.
//
// [Gather] queries a bounded number of observers at a time, each with a timeout, and starts no further query after its
// context has ended. The result is sorted, the worst node first.
package overview
