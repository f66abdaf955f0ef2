// Package repair corrects differences that an audit has found, one at a time and only allowed kinds:
//
//   - an API status that is behind the runtime, while the kubelet has been dead for a while, is written
//     as the kubelet would write it;
//   - a container of a pod that does not exist is stopped and removed.
//
// [Plan] is a pure function of a report: it decides which repairs may be made, within a budget. A
// [Repairer] makes a repair after a second check: the facts must be read after the plan, the difference
// must still exist, and the API itself, not a copy, must agree. A write carries the UID and the resource
// version of the pod, so that it fails on a pod that was recreated or changed meanwhile. Each attempt
// returns a [Result] with the Event and the audit line for it; this package emits nothing.
//
// A kubelet that comes back writes its own status over a repair. Nothing is written while the kubelet
// answers, a terminal phase is never left, and no terminal phase is written while a container could
// still run.
package repair
