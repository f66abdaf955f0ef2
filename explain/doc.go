// Package explain says why a pod is in the state that it is in: as data, and as a sentence.
//
// Everything here is a pure function of [Facts]: the pod, its status, and what a node agent
// knows beyond the status (the last answers of probes, when a container starts next, how far
// the delivery to the API server is). Facts may come from a statusd node, or from one that
// only watches a kubelet; what is missing makes an explanation shorter, never wrong.
//
//	e := explain.Pod(facts)
//	e.State     // NotReady
//	e.Causes    // container db is not ready ← its readiness probe has failed 14 times
//	e.Sentence(time.UTC)
//
// # The chain
//
// An [Explanation] has a state and the causes of that state. A [Cause] may have causes of its
// own. Each cause without deeper ones is a root, and has a [Next]: what to do about it, or what
// is waited for and until when. So every chain ends with what would change it.
//
// Codes ([State], [Code]) are stable: programs may match on them. Texts are for people and
// may change.
package explain
