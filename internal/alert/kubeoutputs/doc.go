// Package kubeoutputs are the outputs of rules to Kubernetes and to the log: [Events] on the pod or the
// Node that an alert is about, [Conditions] of the Node, and [Log].
//
// Events are counted, aggregated and bounded by the queue of events of the process, which this package
// only fills. Conditions are written by strategic merge patches that name the own types alone, so that
// they live beside a kubelet, which writes all of its own.
package kubeoutputs
