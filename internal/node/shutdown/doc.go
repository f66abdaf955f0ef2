// Package shutdown ends the pods of a node in order before its machine goes down.
//
// logind announces a shutdown and delays it for those that ask for a delay. [Manager.Run] asks, and
// when a shutdown is announced the node is no longer ready, takes no more pods, and ends those that it
// has: first the ordinary ones, then the critical ones, each group within its time. Then the shutdown
// may go on. If it is canceled, the node is as before, and static pods run again. [Manager.Drain] does
// the same without logind, for an operator.
//
// # Concurrency
//
// [New] starts nothing. Run blocks until its context ends and may be called once. All other methods
// may be called from any goroutine.
package shutdown
