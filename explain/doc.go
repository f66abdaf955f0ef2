// Package explain explains the state of a pod, as data and as a sentence.
//
// All functions are pure functions of [Facts]: the pod, its status, and the facts that a node agent
// has beyond the status (the last probe results, the next start of a container, the progress of the
// delivery to the API server). Facts may come from a statusd node, or from an observer beside a
// kubelet; missing facts make an explanation shorter, never wrong.
//
//	e := explain.Pod(facts)
//	e.State     // NotReady
//	e.Causes    // container db is not ready ← its readiness probe has failed 14 times
//	e.Sentence(time.UTC)
//
// # The chain
//
// An [Explanation] has a state and the causes of that state. A [Cause] may have causes of its own.
// A cause without deeper causes is a root cause and has a [Next]: what to do about the cause, or
// what the pod waits for and until when.
//
// Codes ([State], [Code]) are stable: programs may match on them. Texts are for people and
// may change.
package explain
