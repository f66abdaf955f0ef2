// Package fleet runs many nodes in one process: for bridges that show each machine of another system as a node, for providers with many
// nodes, and for simulated clusters.
//
//	client, leases, err := fleet.Clients(config)
//	...
//	f, err := fleet.New(fleet.Options{Client: client, Leases: leases})
//	go f.Run(ctx)
//	...
//	n, err := f.Add(fleet.NodeOptions{Options: node.Options{Name: "node-1"}, Handler: handler})
//	...
//	changed, err := f.Manager().SetPodStatus(pod, status) // from the handler, or later
//	...
//	err = f.Remove(ctx, "node-1")
//
// # What the nodes share
//
//	watch of pods  ──► Fleet ──► Manager.ObservePod ──► one queue ──► one connection pool ──► API server
//	                     │              ▲
//	                     └─► inbox of the node ──► Handler ─┘ reports
//	watch of Nodes ──► Node.Watched ──► keeper of each Node ──► API server
//	                                    lease of each Node  ──► a connection of its own ──► API server
//
// One [status.Manager] reports the pods of all nodes. So there is one limit of requests in flight that finds what the API server can
// take, one budget ([Options.QPS]), one journal and one look at the server's version. Withdrawals of any node go first; within a class of urgency the
// nodes have their turns one after the other, however many pods of each wait (status.Options.Share). A [node.Node] keeps each Node
// object and its lease. It looks at the Node in the shared watch, so that an idle node costs its lease and a status every five minutes.
//
// # Rights
//
// The fleet's client needs list and watch of pods and Nodes, patch of pods/status, delete of pods, create, get and patch of Nodes and
// nodes/status, and create, get and update of leases in kube-node-lease. If it may not list all pods, there is a watch for each
// node, by the field selector that the Node authorizer demands, and if it may not watch Nodes, each Node is read every 10 s. A node
// whose [NodeOptions] have a Client acts by that one: it has a watch of its own, and its pods are written by its client, in the
// order and within the budget of the fleet.
//
// The shared watch delivers the pods of all nodes of the cluster. For a fleet that is a small part of a large cluster set
// [Options.WatchPerNode].
//
// # Handlers
//
// Each pod that is new, changed, or to be deleted (deletionTimestamp) is passed to [Handler.SyncPod] of its node, and a pod that the
// API no longer has to [Handler.ForgetPod]. Calls for one node come one at a time, the newest copy of each pod only; nodes are
// independent of each other. A handler reports with the methods of [Fleet.Manager]. A pod with a deletion timestamp is
// removed from the API after [status.Manager.TerminatePod].
//
// # Failures
//
//   - A handler that hangs or panics: its node's later calls wait, or go on; no other node notices.
//   - A node whose requests hang holds one of the requests in flight, and at most six more that do not count. A node whose requests
//     are refused (403, 404, 422) backs off, pod by pod.
//   - A Node that someone deletes stays deleted, as with the kubelet, until it is removed from the fleet and added again.
//   - An API server that is down: each node retries its Node and its lease with a back-off of up to 10 s; statuses are kept, one pod at a
//     time is tried until the server is back.
//   - A restored API server: the watches are listed again, see package status.
//
// # Concurrency
//
// New starts nothing. All methods may be called from any goroutine, Run once. An idle node has two goroutines: its keeper and its
// lease. A third runs while its inbox has pods. None is left when Run has returned; only a call of a handler that is under way is not
// waited for, since it may hang.
package fleet
