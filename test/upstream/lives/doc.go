// Command lives records how a pod's life looks to `kubectl get pod -w`, and sets the
// recordings of two node agents side by side.
//
//	pods/*.yaml ─► record, on a node of the kubelet ─► recordings/kubelet/*.txt ─┐
//	            └► record, on a node of statusd ─────► recordings/statusd/*.txt ─┴► compare ─► docs/evidence/podlives.md
//
// Both agents get the same pods, byte for byte, on a machine of their own (package machine). A pod
// is created, watched, deleted after the time that its annotation lives/for says or when it has
// ended, and watched until it is gone. What happens meanwhile to the pod, its objects and its node
// is in its annotation lives/steps. The columns READY, STATUS and RESTARTS are those that the server prints for
// kubectl; below them stands what kubectl does not show: phase, conditions, containers.
//
// Nothing is asserted: compare prints how many states are the same, and the document
// explains the others.
package main
