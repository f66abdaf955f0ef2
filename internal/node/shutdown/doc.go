// Package shutdown ends the pods of a node in order before its machine goes down.
//
// logind announces a shutdown and delays it while a program holds an inhibitor lock. [Manager.Run]
// takes such a lock. When logind announces a shutdown, the node becomes not ready, admits no more
// pods, and terminates its pods: first the ordinary pods, then the critical pods, each group within
// its time. Then the lock is released. If the shutdown is canceled, the node is ready again, and
// static pods run again. [Manager.Drain] does the same without logind, for an operator.
//
// # Concurrency
//
// [New] starts nothing. Run blocks until its context ends and may be called once. All other methods
// may be called from any goroutine.
package shutdown
