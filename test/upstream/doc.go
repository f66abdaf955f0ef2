// Package upstream holds nothing itself: the module around it sets upstream's status manager,
// that of the kubelet, beside ours. Package oracle compares what the two do, package bench
// how fast they do it, and command lives how a pod's life looks from outside on a node of
// each. It is a module of its own, so that k8s.io/kubernetes never becomes a dependency of
// statusd.
package upstream
