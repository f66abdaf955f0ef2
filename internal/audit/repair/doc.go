// Package repair corrects what observe has found, one thing at a time and only what it is allowed to:
//
//   - an API status that is behind the runtime, while the kubelet has been dead for a while, is written
//     as the kubelet would write it;
//   - a container of a pod that does not exist is stopped and removed.
//
// [Plan] is a pure function of a report: it decides what may be done, within a budget. A [Repairer] does
// it, after it has looked again: the facts must be asked for after the plan, the difference must still be
// there, and the API itself, not a copy, must agree. A write carries the UID and the resource version of
// the pod, so that it fails on a pod that was recreated or changed meanwhile. Each attempt returns a
// [Result] with the Event and the audit line for it; this package emits nothing.
//
// A kubelet that comes back writes its own status over a repair. Nothing is written while it answers,
// a terminal phase is never left, and none is written while a container could still run.
package repair
