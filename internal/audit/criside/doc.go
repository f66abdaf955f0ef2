// Package criside asks a container runtime for its sandboxes and containers, for package observe.
//
//	side, err := criside.New(criside.Options{Endpoint: "unix:///run/containerd/containerd.sock"})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # Lists, not events
//
// Sandboxes and containers are listed at a pace. What a list does not have (times, exit codes, messages, addresses) is requested once per
// state of a container or sandbox. [Side.Calls] counts all calls. Container events are not requested: containerd 1.6 has none, and
// containerd 1.7 hands each event to a single client, so that the kubelet would miss it.
//
// # Unknown, never empty
//
// A runtime that is down, restarts or hangs leaves the last facts with the reason in the Answer. A container that is gone
// between the list and the question for its status is left out, as the next list would. A container
// whose status the runtime cannot give has the state unknown, and no exit code that it never had.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. What
// [Side.Facts] returns is not changed afterwards.
package criside
