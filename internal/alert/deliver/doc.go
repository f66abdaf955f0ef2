// Package deliver brings alerts to one receiver: what every output over the network has in common.
//
// A [Queue] keeps one entry per alert, the newest state of it. [Queue.Put] never blocks; [Queue.Run]
// sends what waits in batches, at once if the receiver is idle, and tries again with back-off and
// jitter if it fails. A firing alert that the receiver has is sent again after [Options.Repeat], so that
// a receiver which forgets, or lets alerts expire, still has it.
//
// What happens to an alert is decided by the book, a value without a goroutine and without a clock.
package deliver
