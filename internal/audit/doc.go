// Package audit compares what four sides report of a node's pods (the API server, the kubelet, the
// container runtime and the machine). It names each difference with its start, its certainty and
// what to do.
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
// the reported state with the runtime's; then the API's status with the status that the kubelet has
// decided, as the rules of podstatus would write it. The comment of Compare gives the order in which one
// cause explains another. TestLegitimateDifferences lists the differences that are no error, case by case.
//
// A kubelet shows its own statuses only in its Pods API (Kubelet.KubeletStatuses). Its GET /pods shows
// copies of the API's: then, and when the kubelet does not answer, the API is compared with the runtime.
//
// # What is drift
//
// Changes take time to arrive. An [Auditor] measures this time: from the start or the end of a
// container, by the runtime's own time, to the first copy that shows it. A difference is drift when
//
//   - it has been seen for longer than the bound of its side (see the constants in propagation.go), counted
//     audit by audit, so that a clock that is set or a process that did not run adds nothing;
//   - the sides that it rests on have answered after that time, not only before;
//   - the side that is behind has not changed what it says meanwhile, which would be progress;
//   - neither the kubelet nor the machine nor a side has started only now, and the kubelet is not busy with
//     the pod (see busy in busy.go).
//
// Drift ends only when the sides that show it answer and agree.
package audit
