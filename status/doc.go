// Package status is the status manager: a node agent reports what it sees of its pods,
// and the API server has it, in order, with one request a change, whatever fails in
// between.
//
// # Use
//
//	table := pods.New()
//	manager, err := status.New(status.Options{
//		Client: status.NewClient(clientset.CoreV1().RESTClient(), nodeName),
//		Pods:   table,
//	})
//	go manager.Run(ctx)
//
// Reporters (pod workers, probers, observers of a runtime) call [Manager.SetPodStatus],
// [Manager.SetContainerReadiness], [Manager.SetContainerStartup],
// [Manager.UpdatePodStatus] and [Manager.TerminatePod]. Whoever watches the API puts each
// pod into the table and then calls [Manager.ObservePod]. On the way out,
// [Manager.Flush] waits until all is delivered, and then the context of Run is ended.
//
// # The loop
//
//	report ─► cache ─► inbox ─► queue ─► turn ─► API server
//	                              ▲        │ merge with the base, patch what differs
//	watch ──► ObservePod ─────────┴────────┘ accepted, again, or later
//
// A report is checked, completed and stored in the cache as a new version; a note for the
// pod goes to the inbox. One goroutine, the owner, takes the notes into the queue and
// gives pods their turns: the most urgent class first with a share for the others, one at a
// time for a pod, as many at once as pay, within the budget. A turn takes the newest version,
// merges it with the base (the newest copy of the API's pod that we know) and sends what
// differs. A turn that fails is repeated on a schedule of the pod's own.
//
// # Concurrency
//
// Every exported method may be called from any goroutine and none waits for the API
// server, but for Run and Flush. Reports that end a pod wait for the journal, if there is
// one. Constructors start nothing. Run starts a goroutine for each turn and has none left
// when it returns.
//
// Nothing is aliased: what is passed in is copied, and what is handed out is a copy.
package status
