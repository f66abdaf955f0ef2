// Package virtualkubelet makes a whole node of a provider of virtual-kubelet: of a program that creates, deletes and
// describes pods somewhere else, such as a cloud, a batch system or another cluster.
//
//	err := virtualkubelet.Run(ctx, virtualkubelet.Options{Client: clientset, NodeName: "cloud", Provider: provider})
//
// The interfaces are declared here, from Kubernetes' types, so that an existing provider satisfies [Provider] as it is;
// docs/use/providers.md has the few lines that logs and streams need. virtual-kubelet's module is not imported.
//
// # What a provider says
//
// [Repair] holds each report to the rules of pod status before it is stored: a pod that has ended stays so, a container
// does not come back from the dead, a pod that ends has no running containers, times and restart counts do not run
// backwards, and what is missing is filled in. Each repair is logged, counted and passed to [Options.OnRepair]. The
// status manager of package status then delivers the status until the API server has it.
//
// # The loop
//
//	watch of the node's pods ─┐
//	NotifyPods, polls ────────┼─► one turn per pod name at a time ─► CreatePod, UpdatePod, DeletePod, GetPodStatus
//	time: retries, polls ─────┘                                  └─► Repair ─► status.Manager ─► API server
//
// A turn looks at what the API wants and at what the provider has, and takes one step. A step that fails is tried again
// with a back-off of the pod's own. A provider's call that panics is an error of that step; a call that does not return
// holds up its own pod and no other. No pod is created before GetPods was answered once, and a pod that has run is never
// created a second time: a pod that the provider has lost is Failed with the reason NotFound.
//
// # Concurrency
//
// Methods of the provider are called from many goroutines, for a pod one at a time, but for logs and streams. Pods that
// are passed to a provider are copies of its own. After the context of Run has ended, Run waits a few seconds for calls
// that are under way; a call that ignores its context is left behind.
package virtualkubelet
