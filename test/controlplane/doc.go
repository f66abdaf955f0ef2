// Package controlplane runs the real API server of the nested module controlplane/ as a child
// process, for tests, benchmarks and demonstrations.
//
//	Start → ready → (Kill | Stop → Restart → ready)* → Stop
//
// Start builds the binary if needed and returns when the server is ready. The data directory
// outlives the process: Restart serves the same objects at the same address, so that existing
// clients keep working. The child cannot outlive its parent: the kernel kills it when the parent
// ends.
//
// All methods of Process may be called from any goroutine; methods that start or end the server
// wait for one another.
package controlplane
