// Package history records what happened to the pods of a node: each transition of a phase, a
// condition or a container, each restart, probe verdict, hook, admission, delivery and deletion,
// with the time of observation, the time when the API server accepted it, and its cause.
//
//	store := history.New(history.Options{File: "/var/lib/statusd/history"})
//	go store.Run(ctx)                     // writes the file in the background
//	store.Changed(change)                 // from the reporter of a status: appends, nothing more
//	store.Add(pod, history.Record{...})   // what is no change of a status
//	pod, ok := store.Pod("shop", "web-0") // the newest pod of that name, also if it is gone
//	for event := range store.Watch(ctx, since) { ... }
//
// # Reporters do not wait
//
// [Store.Changed], [Store.Accepted] and their like append to a batch in memory. The difference between
// two statuses is computed later, by the goroutine of [Store.Run] or by the first query. The batch is
// bounded: when it is full, further changes of a pod are merged, and the store counts the losses.
//
// # Bounds
//
// A pod keeps at most [Options.PerPod] records. Beyond that limit, the subject with the most records
// (a condition, a container, a probe) loses its oldest record after the first, so that a flapping
// subject displaces only its own records. [Record.Dropped] is the number of records that are missing
// before a record. All pods together keep at most [Options.Total] records; the pods with the most
// records lose some first. Deleted pods are kept for [Options.Keep].
//
// # The file
//
// History is best effort: it never stops a node. It survives a restart and kill -9, except for the last
// unwritten batch (a fraction of a second). A power loss also loses the data that the kernel had not written.
// Read and write errors are counted and logged, and become records of the node.
package history
