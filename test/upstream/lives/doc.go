// Command lives records how `kubectl get pod -w` shows the life of a pod, and compares the
// recordings of two node agents.
//
//	pods/*.yaml ─► record, on a node of the kubelet ─► recordings/kubelet/*.txt ─┐
//	            └► record, on a node of statusd ─────► recordings/statusd/*.txt ─┴► compare ─► docs/evidence/podlives.md
//
// Both agents get the same pods, byte for byte, on a machine of their own (package machine). A pod is created,
// watched, deleted after the time in its annotation lives/for or when it has ended, and watched until it is
// gone. The annotation lives/steps lists the steps in between that change the pod, its objects or its node. The
// columns READY, STATUS and RESTARTS are printed by the server for kubectl; phase, conditions and containers,
// which kubectl does not show, stand below them.
//
// Nothing is asserted: compare counts the equal states, and the document explains the differences.
package main
