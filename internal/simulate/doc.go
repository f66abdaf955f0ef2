// Package simulate is a simulated cluster on a fleet: nodes whose pods run in name only, with the kubelet's rules for their statuses.
//
//	Script ──► Simulation ──► fleet.Fleet ──► API server
//	              │  handler of each node: pods start, become ready, flap, end, crash, are evicted
//	              └─ outages of nodes by time
//
// A [Script] has rules for the behavior of pods (the first match counts) and a schedule of node outages. The selection of pods
// depends only on the seed and the UID of the pod.
//
// [Simulation.Run] blocks. Each pod waits by a timer and has no goroutine of its own.
package simulate
