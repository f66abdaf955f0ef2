// Package criside reads the sandboxes and containers of a container runtime, for package audit.
//
//	side, err := criside.New(criside.Options{Endpoint: "unix:///run/containerd/containerd.sock"})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # Lists, not events
//
// Sandboxes and containers are listed periodically. Facts that a list lacks (times, exit codes, messages, addresses) are requested once
// per state of a container or sandbox. [Side.Calls] counts all calls. Container events are not requested: containerd 1.6 has none, and
// containerd 1.7 hands each event to a single client, so that the kubelet would miss it.
//
// # Unknown, never empty
//
// A runtime that is down, restarts or hangs leaves the last facts with the reason in the Answer. A container that is
// removed between the list and the request for its status is left out, as in the next list. A container whose status the
// runtime cannot return has the state unknown and no exit code.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. The
// facts that [Side.Facts] returns are not changed afterwards.
package criside
