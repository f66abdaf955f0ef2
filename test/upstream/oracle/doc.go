// Package oracle runs random programs of calls against the kubelet's own status manager and against
// statusd's, and compares the resulting pods.
//
// # The loop
//
//	seed ─► program ─► bubble: ┌ kubelet's manager ─► its API ┐
//	                           └ statusd's manager ─► its API ┘─► compare ─► wanted? ─► shrink, print
//
// A [Program] is a list of [Step] values, one line of text each. A step changes the node (a
// container exits), calls both managers (a report, a probe result), changes both APIs (a second
// writer, a deletion, an outage), or lets time pass. Each manager has its own [Server], which
// applies patches as the API server does. The kubelet's side is corrected where it has bugs that
// statusd does not have, see [Corrections], so that the whole life of a pod can be compared. After
// a settle step the pods in both APIs, both caches and the deletions are compared. A difference
// that the list in wanted.go names and whose check recognizes it is counted; any other ends the
// run, is shrunk to the shortest program that shows it, and is printed as a trace.
//
// # Time
//
// A program runs inside a testing/synctest bubble: its minutes cost nothing, and both managers see
// the same clock. Steps happen half a second off the ticks of both managers, so that a program has
// the same result each time.
//
// # Whether it sees
//
// Command mutants breaks statusd's rules one at a time and names the program that notices.
//
// Nothing here may be called concurrently, except that programs run side by side.
package oracle
