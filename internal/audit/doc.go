// Package audit reports whether what the API reports of a node is true. It compares what four sides
// know (the API server, the kubelet, the container runtime and the machine) and names each
// difference: what it is, since when, how certain that is, and what to do.
//
//	apiside ────┐
//	kubeletside ┼─► Facts ──► Compare ──► Auditor ──► Report ──► repair.Plan
//	criside ────┤   at one    which       which
//	machineside ┘   instant   differences last
//
// The package itself is pure: [Facts] go in, a [Report] comes out. There is no clock, I/O, lock or
// goroutine here, and nothing depends on the order of a map. The packages below it collect the facts, one
// side each. A side that does not answer is unknown, never empty.
//
// # What is compared
//
// [Compare] joins the facts by pod (a mirror pod with its static pod) and compares, for each container,
// what was reported with what the runtime has; then what the API has with what the kubelet itself says, as
// the rules of podstatus would write it. Its comment has the order in which one cause explains another.
// What the sides may say differently by right is in TestLegitimateDifferences, case by case.
//
// A kubelet shows its own statuses only in its Pods API (Kubelet.KubeletStatuses). Its GET /pods shows
// copies of the API's: then, and when the kubelet does not answer, the API is compared with the runtime.
//
// # What is drift
//
// News takes time. An [Auditor] measures how long: from the start or the end of a container, by the
// runtime's own time, to the first copy that shows it. A difference is drift when
//
//   - it has been seen for longer than the bound of its side (see the constants in propagation.go), counted
//     audit by audit, so that a clock that is set or a process that did not run adds nothing;
//   - the sides that it rests on have answered after that time, not only before;
//   - the side that is behind has not changed what it says meanwhile, which would be progress;
//   - neither the kubelet nor the machine nor a side has started only now, and the kubelet is not busy with
//     the pod (see busy in busy.go).
//
// Drift is over when the sides that it rests on answer and agree, and not before.
package audit
