// Package node maintains the Node object of this machine: it registers the Node, renews its lease,
// and reports capacity, addresses and conditions from readings of the machine.
//
// Two loops run inside [Node.Run]:
//
//	every 10 s:  read the machine ─► look at the Node ─► create it, mend our labels,
//	                                                     patch the status if it differs
//	                                                     or is older than 5 minutes
//	every 10 s:  renew the lease in kube-node-lease, owned by the Node
//
// With a [Memory], a watch of the Node records a cordon at once, and triggers the first loop when the Node was cordoned or
// deleted.
//
// Labels, taints, conditions and resources that statusd does not own are never changed or removed,
// and each write has the UID of the Node as a precondition. An API server that is down is never
// fatal; both loops retry with backoff and jitter, forever.
//
// A deleted Node stays deleted until the next start of the program, as with the kubelet: kubectl drain and kubectl
// delete node remove a machine until its operator restarts the program. With a [Memory], the Node comes back
// unschedulable if it was unschedulable when last seen.
//
// Pure functions compute the conditions from a [Reading]; reasons and messages equal those of the
// kubelet, which people and tools look for.
//
// # Concurrency
//
// [New] starts nothing. Run blocks until its context ends and may be called once. All
// other methods may be called from any goroutine; [Options.Read] and [Options.Ready] are
// called by one goroutine at a time.
package node
