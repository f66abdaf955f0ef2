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
// One [status.Manager] reports the pods of all nodes. So there is one adaptive limit of requests in flight, one budget ([Options.QPS]), one journal
// and one check of the server's version. Withdrawals of any node go first; within a class of urgency the nodes take turns, however many pods of each
// node wait (status.Options.Share). A [node.Node] maintains each Node object and its lease. The [node.Node] reads the Node from the shared watch, so
// that an idle node costs one lease renewal every 10 s and one status every five minutes.
//
// # Rights
//
// The fleet's client needs list and watch of pods and Nodes, patch of pods/status, delete of pods, create, get and patch of Nodes and
// nodes/status, and create, get and update of leases in kube-node-lease. If the client may not list all pods, the fleet watches the
// pods of each node separately, with the field selector that the Node authorizer requires. If the client may not watch Nodes, each
// Node is read every 10 s. A node whose [NodeOptions] have a Client uses that client: the node has its own watch, and its client
// writes its pods, in the order and within the budget of the fleet.
//
// The shared watch delivers the pods of all nodes of the cluster. If the fleet is a small part of a large cluster, set
// [Options.WatchPerNode].
//
// # Handlers
//
// Each pod that is new, changed, or to be deleted (deletionTimestamp) is passed to [Handler.SyncPod] of its node. A pod that the API
// no longer has is passed to [Handler.ForgetPod]. Calls for one node come one at a time, with the newest copy of each pod; nodes are
// independent of each other. A handler reports statuses with the methods of [Fleet.Manager]. A pod with a deletion timestamp is
// removed from the API after [status.Manager.TerminatePod].
//
// # Failures
//
//   - A handler that hangs blocks the later calls of its node; after a panic the calls go on. No
//     other node is affected.
//   - A node whose requests hang occupies one of the requests in flight, plus at most six that do not count towards the limit. A
//     node whose requests are refused (403, 404, 422) backs off, pod by pod.
//   - A deleted Node stays deleted, as with the kubelet, until the node is removed from the fleet and added again.
//   - While the API server is down, each node retries its Node and its lease with a back-off of up to 10 s; statuses are kept, and one
//     pod at a time is tried until the server is back.
//   - After the API server was restored from a backup, the watches list again; see package status.
//
// # Concurrency
//
// New starts nothing. All methods may be called from any goroutine, Run once. An idle node has two goroutines: its keeper and its
// lease. A third runs while its inbox has pods. No goroutine is left when Run has returned, except handler calls under way: a call
// may hang, so Run does not wait for it.
package fleet
