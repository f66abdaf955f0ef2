// Package worker brings each pod of a node to its desired state: one state machine per pod, from
// its first start until all its resources are removed.
//
// # Use
//
//	workers, err := worker.New(worker.Options{Runtime: rt, Status: manager, Prober: prober})
//	go workers.Run(ctx)
//	workers.Update(pod)     // a source: new or changed
//	workers.Remove(pod)     // a source: gone
//	workers.SourcesReady()  // every source has synced
//
// Workers is also the status manager's Safety: see [Workers.CouldHaveRunningContainers].
//
// # The loop
//
//	Update, Remove ──┐
//	probes ──────────┼─► inbox ─► turn: observe ─► report ─► plan ─► act ─┐
//	runtime's Watch ─┘             ▲                                      │
//	                                └── again when something is due ◄──────┘
//
// A turn reads the pod's state from the runtime, reports it to the status manager, plans the due
// actions and executes them. The plan is a pure function (makePlan, nextSteps, and the grace and
// back-off beside them); the rest of the package does the I/O. An update that changes only the
// status which this node reports causes no turn.
//
// A pod goes through these stages, never back:
//
//	syncing ──► terminating ──► stopped ──► finished ──► forgotten
//	admitted,   hooks, signals, all ends    TerminatePod  RemovePod, once
//	started,    kills, within   are known                 its source has
//	restarted   one grace                                 dropped it
//
// A pod leaves syncing when it is deleted, removed, past its deadline, rejected, or when its
// containers have ended for good. A pod whose phase in the API or the journal is Succeeded or
// Failed is never started.
//
// # After a restart of this process
//
// Containers keep running without this process. The next process adopts the pods of the runtime: container IDs,
// restart counts and exit codes come from there. Adopted pods are not admitted a second time. A pod that no
// source has named yet takes room on the node, or keeps a static pod of the same name waiting, only if it could
// run. Pods of the runtime that no source names are ended only after all sources have synced, static pods only
// after the manifests were read. Back-off and unfinished hooks are forgotten, as with the kubelet; Workers that
// follow others in the same process keep their back-offs if both have the same [Memory].
//
// # Words
//
//	turn          one pass of a worker over its pod
//	inbox, input  updates and signals for a worker; the copy of them that a turn works with
//	observation   the pod's state at the runtime, and its last reported status
//	plan          what to start and stop for a pod that should run
//	stage         how far a pod is in its life: see above
//	orphan        a pod of the runtime that no source has; it is ended and not reported
//	leftover      a pod that an earlier process left in the runtime
//	allocated     the resources granted to the pod by its admission or by a resize
//
// # Concurrency
//
// All exported methods may be called from any goroutine, and no method waits for a pod. Each pod
// has one goroutine, which owns the pod's state, and a short-lived goroutine for each hook, so that
// a slow pod does not delay the others. Run starts the goroutines and waits for all of them before
// it returns. The status manager, the prober and the recorder are called from the goroutines of
// pods, without a lock held; admission is called for one pod at a time.
package worker
