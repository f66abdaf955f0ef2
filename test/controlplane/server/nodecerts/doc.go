// Package nodecerts lets the nodes of a cluster have certificates without an administrator.
//
// The controllers of kube-controller-manager approve a request for a client certificate if the requester
// has the right to it; Bind grants that right to bootstrap tokens and to nodes. No controller of Kubernetes
// approves requests for serving certificates, because only the operator of a cluster knows which addresses
// belong to a node. On one machine the Node object is enough: Approver approves a request of a node for its
// own name and for addresses that its Node object lists, and leaves every other request alone.
package nodecerts
