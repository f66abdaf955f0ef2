// Package runtime is the interface between the node and whatever runs its pods:
// processes, containers, virtual machines, jobs of a batch system.
//
// A pod's life in a runtime:
//
//	Check ──► StartPod ──► StartContainer … ──► StopContainer … ──► RemovePod
//	can it?   place,       one attempt of       signal, grace,       nothing
//	          volumes, IP  one container        kill                 is left
//
// Meanwhile Watch says which pod changed, and Pod and Pods say what it looks like now.
//
// # What a runtime must do
//
// It remembers. Pods lists everything that the runtime has started and not yet removed,
// also what an earlier process of this node started: a restart of the node's agent is
// no event in the life of a container, and an exit that happened meanwhile is reported
// with its exit code afterwards. A runtime keeps its own durable records for that, and
// never asks the API server.
//
// It refuses rather than ignores. Whatever a pod asks for and the runtime cannot do is
// named by Check, field by field, before a container is started. The container waits with the
// reason, as with the kubelet; the pod is not rejected, since a controller would replace it at once.
//
// It decides nothing. Restarts, back-off, probes, order of init containers and the
// pod's phase belong to the caller, who hands over one attempt of one container at a
// time. The runtime keeps at least the two newest attempts of each container and may
// forget older ones.
//
// # Contract
//
// All methods may be called from any goroutine. Calls about one pod come one after the
// other, except StopContainer, Exec, Logs and those of [Streamer] and [Statser], which may come at
// any time. Methods
// return when their work is done, with the exception of StopContainer, which returns
// when the stop can no longer be forgotten. What a runtime hands out belongs to the
// caller; a pod passed in is not changed and not kept.
//
// What a runtime can do beyond that it offers by further interfaces, each of which says what is
// lost without it: [Runner], [Meter], [Resizer], [PodUpdater], [HostNetwork], [VolumeRemover],
// [LogRemover], [ProblemReporter], [Gate], [Streamer], [Statser]. Package runtime/function is the shortest runtime: containers
// are calls of a Go function.
//
// A new runtime runs the suite of runtime/runtimetest over itself. Tests of callers use
// internal/runtimefake.
package runtime
