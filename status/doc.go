// Package status publishes the status of a node's pods to the Kubernetes API server: in order, with
// one request per change, and through outages and restarts. A node agent, a virtual kubelet or a
// bridge to another scheduler reports what it observes of its pods; the [Manager] delivers the
// statuses.
//
//	manager, err := status.New(status.Options{
//		Client: status.NewClient(clientset.CoreV1(), nodeName),
//	})
//	...
//	podInformer.AddEventHandler(manager.EventHandler())
//	go manager.Run(ctx)
//	...
//	changed, err := manager.SetPodStatus(pod, newStatus)
//
// # What the caller does
//
//  1. Create a manager with [New]. The zero [Options] work; a [Client] is needed to send statuses,
//     a Journal to keep the end of a pod across a crash.
//
//  2. Feed it the watch of the node's pods: add [Manager.EventHandler] to an informer, or call
//     [Manager.ObservePod] and [Manager.ObserveDelete] in the order of the events.
//
//  3. Call [Manager.Run] in a goroutine. Run lists the node's pods before it sends anything.
//
//  4. Report. [Manager.SetPodStatus] takes a whole status, as computed by podstatus.Generate;
//     [Options.CompleteReports] fills in fields that a report leaves out. [Manager.UpdatePodStatus]
//     changes a part of the last status, and [Manager.SetContainerReadiness] and
//     [Manager.SetContainerStartup] take probe results. A report that changes nothing is cheap and
//     sends nothing, so reports may be repeated.
//
//  5. When all containers of a pod have stopped for good, call [Manager.TerminatePod]. If the pod is
//     being deleted, the manager deletes the pod from the API once its last status is stored there.
//     [Manager.ObserveTermination] makes the exit of a container survive a crash before its report.
//
//  6. Before exiting, call [Manager.Shutdown], which delivers the unsent statuses and ends Run.
//     Shutdown also delivers if Run has ended already, as with the context of signal.NotifyContext.
//
// # How a pod is forgotten
//
// A manager without Options.Pods keeps a table of the pods that it has observed, and forgets a pod
// everywhere (table, status, queue and journal) when
//
//   - the deletion of the pod is observed, or a pod with another UID is observed under its name;
//   - the manager has deleted the pod itself, see step 5 (the table follows with the event);
//   - a report arrives after one of these, and the API server does not have the pod.
//
// Neither a timer nor an error of a request for the pod (404, say) makes the manager forget a pod:
// the unsent end of a pod is kept while the pod may exist. [Manager.Forget] forgets one pod at the
// caller's request.
//
// A caller that keeps its own table (Options.Pods) changes the table before it calls ObservePod or
// ObserveDelete, and passes the remaining pods to [Manager.RemoveOrphanedStatuses]. Use Options.Pods
// for agents whose pods outlive their deletion from the API, because their containers must still be
// stopped.
//
// # When a pod may end
//
// A terminal phase is final, and controllers act on it at once. So a terminal phase is withheld from the API
// while a container could still run; the rest of the status is sent. [Options.Safety] decides whether a
// container could still run, and is called for terminal phases only. By default the reports decide: a
// container counts as running if it was last reported running, even if a later report does not list it. Such
// a report returns a [*Warning] whose cause is a [*WithheldError], and the pod is in [Manager.Pending] until
// a report lists the containers as terminated, or [Manager.TerminatePod] is called.
//
// Before a pod is deleted from the API, [Options.Reclaim] may require more: volumes unmounted, cgroups
// removed. Safety and Reclaim are called again after each report, and with a back-off of up to 10 s.
//
// # Errors of a report
//
// Each call that reports returns one error. There are two kinds:
//
//	[*Warning]   the report was stored and is sent except for a part. The cause: [*PhaseError],
//	             [*WithheldError], or the journal's error
//	any other    nothing of the report was stored: [*InvalidStatusError], [*podstatus.TransitionError],
//	             [ErrUnknownPod], [ErrNoUID], [ErrNoStatus], [ErrUnknownContainer]
//
// [IsWarning] tells them apart, errors.Is and errors.As find the cause. A stored report need not be
// repeated: the manager retries until the API server has the status.
//
// [Manager.SetPodAllocation] and [Manager.ObserveTermination] store in the journal alone: if they return an
// error, their arguments are not durable.
//
// # Static pods
//
// A static pod comes from a manifest on the node, and the API has a mirror pod of another UID for it.
// Pass the static pod to ObservePod, and report under its UID: the manager writes to the mirror, waits
// while no mirror exists, and sends everything again to a new mirror. The deletion of the mirror does
// not forget the static pod; ObserveDelete with the static pod does. Its UID is the same in each of its
// lives, so a report after its end begins another life.
//
// # The loop
//
//	report ─► cache ─► inbox ─► queue ─► turn ─► API server
//	                              ▲        │ merge with the base, patch what differs
//	watch ──► ObservePod ─────────┴────────┘ accepted, again, or later
//
// A report is checked, completed and stored in the cache as a new version, and a turn is requested for
// the pod. One goroutine, the owner, takes the requests from the inbox into the queue and starts the
// turns: the most urgent class first with a share for the others, one turn at a time per pod, as many
// at once as increase the throughput, within the budget. A turn takes the newest version, merges it
// with the base and sends what differs. Differences of details alone, which no client waits for, are sent
// at once while they are few; of many pods each is sent with the pod's next report, or after 5 s, of a pod in deletion after 10 s. A failed turn is retried with the pod's own back-off.
//
// # Words
//
//	version   the number of a pod's status; each stored change has the next one
//	accepted  the newest version that the API server has
//	turn      one attempt to make the API's pod equal to the newest version, usually one request
//	base      the newest copy of the API's pod that is known; a patch is the difference to it
//	target    the object in the API that a pod is written to: itself, or the mirror of a static pod
//	urgency   the class of a change: withdrawal (readiness or the pod is lost), start, normal, background
//	final     a status that ends the pod; the journal keeps it until the API server has it
//	finished  TerminatePod was called: nothing of the pod will change
//	withheld  a terminal phase that waits until no container can run
//	fight     another writer keeps changing the status back; the manager slows down
//	decision  the server repeatedly stores something else than was sent; its answer stands
//	refused   a field that the server rejects; the rest of the status is sent without it
//	full pass the comparison of all pods with the API's, a safety net under the watch
//	epoch     the server's history between two restores from a backup
//
// # Concurrency
//
// Every exported method may be called from any goroutine. Only Run, Flush and Shutdown wait for the API server. With
// a journal, reports that end a pod wait until the end is written or the API server has the status;
// ObserveTermination, SetPodAllocation, Forget and RemoveOrphanedStatuses wait until their write is done. No call
// waits for the writes of another pod, and only SetPodAllocation waits for a disk that hangs. ObservePod,
// ObserveDelete and all other reports never wait for the disk. Constructors start nothing. Run starts a goroutine for
// each turn; no goroutine is left when Run returns, unless a write hangs.
//
// Reports are copied, and the manager returns copies. Observed pods are not copied and must not be
// changed, as with an informer's cache.
package status
