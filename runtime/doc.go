// Package runtime is the interface between the node and whatever runs its pods:
// processes, containers, virtual machines, jobs of a batch system.
//
// A pod's life in a runtime:
//
//	Check ──► StartPod ──► StartContainer … ──► StopContainer … ──► RemovePod
//	can it?   place,       one attempt of       signal, grace,       nothing
//	          volumes, IP  one container        kill                 is left
//
// Meanwhile Watch reports which pods changed, and Pod and Pods return their current state.
//
// # What a runtime must do
//
// A runtime remembers. Pods lists everything that the runtime has started and not yet removed,
// including pods started by an earlier process of this node: a restart of the agent does not affect
// containers, and an exit during the restart is reported afterwards with its exit code. A runtime
// keeps its own durable records for this, and never asks the API server.
//
// A runtime refuses rather than ignores. Check returns each field of the pod that the runtime cannot
// honor, before a container is started. The container waits with the reason, as with the kubelet;
// the pod is not rejected, since a controller would replace a rejected pod at once.
//
// A runtime decides nothing. The caller decides about restarts, back-off, probes, the order of init
// containers and the pod's phase, and starts one attempt of one container at a time. The runtime
// keeps at least the two newest attempts of each container and may drop older attempts.
//
// # Contract
//
// All methods may be called from any goroutine. Calls about one pod come one after the other,
// except StopContainer, Exec, Logs and the methods of [Streamer] and [Statser], which may come at
// any time. Methods return when their work is done, except StopContainer, which returns when the
// stop is durable. Returned values belong to the caller; a pod passed in is not changed and not
// kept.
//
// A runtime offers further capabilities by optional interfaces; the comment of each interface says what does not work without
// it: [Runner], [Meter], [Resizer], [PodUpdater], [HostNetwork], [VolumeRemover], [LogRemover], [ProblemReporter], [Gate],
// [Streamer], [Statser]. Package runtime/function is the shortest runtime: containers are calls of a Go function.
//
// Test a new runtime with the suite of runtime/runtimetest. Tests of callers use
// internal/runtimefake.
package runtime
