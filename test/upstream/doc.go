// Package upstream is empty. Its module compares upstream's status manager, the kubelet's, with
// statusd's: package oracle compares their results, package bench their speed, and command lives
// the life of a pod on a node of each as a client observes it. It is a separate module so that
// k8s.io/kubernetes never becomes a dependency of statusd.
package upstream
