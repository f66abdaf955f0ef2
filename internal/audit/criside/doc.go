// Package criside asks a container runtime for its sandboxes and containers, for package observe.
//
//	side, err := criside.New(criside.Options{Endpoint: "unix:///run/containerd/containerd.sock"})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # Lists and events
//
// Sandboxes and containers are listed at a pace. Where the runtime serves container events, each brings
// the state of its pod at once, and lists are rarer. What a list does not have (times, exit codes, messages, addresses) is asked for once per
// state of a container or sandbox. [Side.Calls] counts all calls.
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
