// Package nodecerts issues certificates to the nodes of a cluster without an administrator.
//
// The controllers of kube-controller-manager approve a request for a client certificate if the requester
// has the right to it; Bind grants that right to bootstrap tokens and to nodes. No controller of Kubernetes
// approves requests for serving certificates, because only the operator of a cluster can verify which
// addresses belong to a node. On one machine the Node object is enough: Approver approves a node's request
// for its own name and for addresses in its Node object, and ignores every other request.
package nodecerts
