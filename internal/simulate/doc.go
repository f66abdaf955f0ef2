// Package simulate is a simulated cluster on a fleet: nodes whose pods run in name only, with the kubelet's rules for their statuses.
//
//	Script ──► Simulation ──► fleet.Fleet ──► API server
//	              │  handler of each node: pods start, become ready, flap, end, crash, are evicted
//	              └─ outages of nodes by time
//
// A [Script] says how pods behave, by rules of which the first that matches a pod counts, and what happens to nodes when. Which of the
// pods behave so follows from the seed and the UID of the pod alone.
//
// [Simulation.Run] blocks. Each pod waits by a timer and has no goroutine of its own.
package simulate
