// Package status publishes the status of a node's pods to the Kubernetes API server: in order, with
// one request per change, and through outages and restarts. A node agent, a virtual kubelet or a
// bridge to another scheduler reports what it sees of its pods; the [Manager] does the rest.
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
//  1. Make a manager with [New]. The zero [Options] work; with a [Client] statuses are sent, with a
//     Journal the end of a pod survives a crash.
//
//  2. Feed it the watch of the node's pods: add [Manager.EventHandler] to an informer, or call
//     [Manager.ObservePod] and [Manager.ObserveDelete] in the order of the events.
//
//  3. Call [Manager.Run] in a goroutine. It sends nothing before it has listed the node's pods.
//
//  4. Report. [Manager.SetPodStatus] takes a whole status, as podstatus.Generate makes it;
//     [Options.CompleteReports] fills in what a report leaves out. [Manager.UpdatePodStatus] changes
//     a part of the last one, and [Manager.SetContainerReadiness] and
//     [Manager.SetContainerStartup] take results of probes. A report that changes nothing is cheap
//     and sends nothing, so it may be repeated.
//
//  5. When no container of a pod runs any more and none will, call [Manager.TerminatePod]. If the pod
//     is being deleted, the manager deletes it from the API once its last status is there.
//     [Manager.ObserveTermination] makes the exit of a container survive a crash before its report.
//
//  6. On the way out, call [Manager.Shutdown], which delivers what is not sent and ends Run. It also
//     delivers if Run has ended already, as with the context of signal.NotifyContext.
//
// # How a pod is forgotten
//
// A manager without Options.Pods keeps a table of the pods that it has observed, and forgets a pod
// everywhere (table, status, queue and journal) when
//
//   - its deletion is observed, or a pod of another UID is observed under its name;
//   - it has deleted the pod itself, see duty 5 (the table follows with the event);
//   - a report comes after one of these, and the API server proves not to have the pod.
//
// No timer forgets a pod, and no answer of the server to a request for the pod alone: an end that was
// not sent stays while the pod may exist. [Manager.Forget] forgets one pod at the caller's word.
//
// A caller that keeps its own table (Options.Pods) changes the table before it calls ObservePod or
// ObserveDelete, and says which pods are left with [Manager.RemoveOrphanedStatuses]. That is for
// agents whose pods outlive their deletion from the API, because containers are still to be stopped.
//
// # When a pod may end
//
// A terminal phase is final, and controllers act on it at once. So it is withheld from the API while a
// container could still run; the rest of the status is sent. [Options.Safety] decides that, and is
// asked for no other phase. By default it follows from the reports: a container runs that was last reported
// running, also if a later report does not list it. Such a report returns a [*Warning] whose cause is a
// [*WithheldError], and the pod is in [Manager.Pending] until a report lists the containers as terminated, or
// [Manager.TerminatePod] is called.
//
// Before a pod is deleted from the API, [Options.Reclaim] may ask for more: volumes unmounted, cgroups
// removed. Both are asked again after each report, and on a schedule that ends at 10 s.
//
// # Errors of a report
//
// Each call that reports returns one error. There are two kinds:
//
//	[*Warning]   the report was stored and is sent, but for a part. The cause: [*PhaseError],
//	             [*WithheldError], or the journal's error
//	any other    nothing of the report was stored: [*InvalidStatusError], [*podstatus.TransitionError],
//	             [ErrUnknownPod], [ErrNoUID], [ErrNoStatus], [ErrUnknownContainer]
//
// [IsWarning] tells them apart, errors.Is and errors.As find the cause. A report that was stored need
// not be repeated: the manager tries until the API server has it.
//
// [Manager.SetPodAllocation] and [Manager.ObserveTermination] store in the journal alone: with an error, what
// they were given is not durable.
//
// # Static pods
//
// A static pod comes from a manifest on the node, and the API has a mirror pod of another UID for it.
// Make the static pod known with ObservePod, and report under its UID: the manager writes to the
// mirror, waits while there is none, and sends everything again to a new one. The deletion of the
// mirror does not forget the static pod; ObserveDelete with the static pod does. Its UID is the same in
// each of its lives, so a report after its end begins another life.
//
// # The loop
//
//	report ─► cache ─► inbox ─► queue ─► turn ─► API server
//	                              ▲        │ merge with the base, patch what differs
//	watch ──► ObservePod ─────────┴────────┘ accepted, again, or later
//
// A report is checked, completed and stored in the cache as a new version, and a turn is requested for
// the pod. One goroutine, the owner, takes the requests from the inbox into the queue and gives
// pods their turns: the most urgent class first with a share for the others, one at a time for a
// pod, as many at once as increase the throughput, within the budget. A turn takes the newest
// version, merges it with the base and sends what differs. A turn that fails is repeated on a schedule
// of the pod's own.
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
//	decision  the server stores something else than was sent, each time; its answer stands
//	refused   a field that the server rejects; the rest of the status is sent without it
//	full pass the comparison of all pods with the API's, a safety net under the watch
//	epoch     the server's history between two restores from a backup
//
// # Concurrency
//
// Every exported method may be called from any goroutine. Only Run, Flush and Shutdown wait for the API server.
// With a journal, reports that end a pod wait until the end is written or the API server has it, ObserveTermination,
// SetPodAllocation, Forget and RemoveOrphanedStatuses until their write is done; none waits for the writes of
// another pod, nor for a disk that hangs, but SetPodAllocation. ObservePod, ObserveDelete and all other
// reports never wait for the disk. Constructors start nothing. Run starts a goroutine for each turn and has none left
// when it returns, unless a write hangs.
//
// Reports are copied, and what the manager returns is a copy. Pods that were observed are kept as they
// are, as an informer keeps them, and must not be changed.
package status
