// Package worker keeps each pod of a node as it should be: one state machine per pod, from
// its first start until nothing of it is left.
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
// A turn asks the runtime what there is, reports it to the status manager, works out what is
// due and does it. What is due is a function of data (makePlan, nextSteps, and the grace and
// back-off beside them); the rest of the package asks and does. An update that changes only
// the status which this node reports causes no turn.
//
// A pod goes through these stages, never back:
//
//	syncing ──► terminating ──► stopped ──► finished ──► forgotten
//	admitted,   hooks, signals, all ends    TerminatePod  RemovePod, once
//	started,    kills, within   are known                 its source has
//	restarted   one grace                                 dropped it
//
// It leaves syncing when it is deleted, removed, past its deadline, rejected, or when its
// containers have ended for good. A pod that the API or the journal calls Succeeded or
// Failed is never started.
//
// # After a restart of this process
//
// Containers keep running without it. What the runtime has is adopted: container IDs, restart
// counts and exit codes come from there. Such a pod is not admitted a second time. Of those
// that no source has named yet only what could run takes room on the node or keeps a static
// pod of the same name waiting. Pods of the runtime that no source names are ended once all
// sources have synced, static ones once the manifests were read, and not before. Back-off and
// unfinished hooks are forgotten, as with the kubelet; Workers that follow others in the same process go on with
// their back-offs if both have the same [Memory].
//
// # Words
//
//	turn          one pass of a worker over its pod
//	inbox, input  what others have for a worker; the copy of it that a turn works with
//	observation   what the runtime has of the pod, and what was reported before
//	plan          what to start and stop for a pod that should run
//	stage         how far a pod is: see above
//	orphan        a pod of the runtime that no source has; it is ended and not reported
//	leftover      a pod that an earlier process left in the runtime
//	allocated     the resources that the pod was admitted with, or that a resize was granted
//
// # Concurrency
//
// All exported methods may be called from any goroutine and none waits for a pod. Each
// pod has one goroutine, which owns all that is known of it, and a short-lived one for
// each hook, so that a slow pod delays no other. Run starts them all and has none left
// when it returns. The status manager, the prober and the recorder are called from the
// goroutines of pods, without a lock held; admission is asked for one pod at a time.
package worker
