// Package virtualkubelet runs a whole node from a virtual-kubelet provider: a program that creates, deletes and
// describes pods somewhere else, such as a cloud, a batch system or another cluster.
//
//	err := virtualkubelet.Run(ctx, virtualkubelet.Options{Client: clientset, NodeName: "cloud", Provider: provider})
//
// The interfaces are declared here, from Kubernetes' types, so that an existing provider satisfies [Provider]
// unchanged; docs/use/providers.md has the few lines that logs and streams need. The module of virtual-kubelet is not
// imported.
//
// # Reports of a provider
//
// [Repair] corrects each report by the rules of pod status before it is stored: a pod that has ended stays ended, a
// terminated container does not run again, a pod that ends has no running containers, times and restart counts do not
// go backwards, and missing fields are filled in. Each repair is logged, counted and passed to [Options.OnRepair]. The
// status manager of package status then delivers the status until the API server has it.
//
// # The loop
//
//	watch of the node's pods ─┐
//	NotifyPods, polls ────────┼─► one turn per pod name at a time ─► CreatePod, UpdatePod, DeletePod, GetPodStatus
//	time: retries, polls ─────┘                                  └─► Repair ─► status.Manager ─► API server
//
// A turn compares the pod in the API with the pod of the provider, and takes one step. A failed step is retried with the
// pod's own back-off. A provider call that panics is an error of its step; a call that does not return blocks its own
// pod only. No pod is created before GetPods has returned once, and a pod that has run is never created a second time: a
// pod that the provider has lost is Failed with the reason NotFound.
//
// # Concurrency
//
// Methods of the provider are called from many goroutines; calls for one pod come one at a time, except logs and
// streams. Pods passed to a provider are copies. After the context of Run has ended, Run waits a few seconds for calls
// under way; a call that ignores its context is abandoned.
package virtualkubelet
