// Package node keeps the Node object of this machine true: it registers it, holds its
// lease, and reports capacity, addresses and conditions from real readings.
//
// Two loops run inside [Node.Run]:
//
//	every 10 s:  read the machine ─► look at the Node ─► create it, mend our labels,
//	                                                     patch the status if it differs
//	                                                     or is older than 5 minutes
//	every 10 s:  renew the lease in kube-node-lease, owned by the Node
//
// What others wrote stays: labels, taints, conditions and resources that statusd does not
// own are never changed or removed, and each write names the UID of the Node that it is
// meant for. An API server that is down is never fatal; both loops retry with backoff and
// jitter, forever.
//
// A Node that someone deletes stays deleted until the next start of the program, as with the kubelet: kubectl drain and
// kubectl delete node take a machine away for as long as its operator leaves the program alone. With a [Memory] the Node
// comes back unschedulable if it was so when it was last seen.
//
// What the conditions say is decided by pure functions over a [Reading]; reasons and
// messages are those of the kubelet, since that is what people and tools look for.
//
// # Concurrency
//
// [New] starts nothing. Run blocks until its context ends and may be called once. All
// other methods may be called from any goroutine; [Options.Read] and [Options.Ready] are
// called by one goroutine at a time.
package node
