// Package deliver delivers alerts to one receiver: the common part of all network outputs.
//
// A [Queue] keeps one entry per alert, its newest state. [Queue.Put] never blocks; [Queue.Run] sends
// waiting alerts in batches, at once if the receiver is idle, and tries again with back-off and jitter
// if it fails. A delivered alert that fires is sent again after [Options.Repeat], so that a receiver
// which loses alerts, or lets them expire, still has it.
//
// The book decides what happens to an alert; it is a value without a goroutine and without a clock.
package deliver
