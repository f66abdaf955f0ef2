// Package history keeps what happened to the pods of a node: each transition of a phase, a
// condition or a container, each restart, probe verdict, hook, admission, delivery and deletion,
// with when it was observed, when the API server took it, and its cause.
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
// [Store.Changed], [Store.Accepted] and their like append to a batch in memory. What differs between
// two statuses is computed later, by the goroutine of [Store.Run] or by the first query. The batch is
// bounded: when it is full, the further changes of a pod are joined, and the store counts what was lost.
//
// # Bounds
//
// A pod keeps at most [Options.PerPod] records. Of the subject that has the most (a condition, a
// container, a probe), the oldest one after the first is dropped, so that what flaps pushes out only
// its own past. [Record.Dropped] says how many are missing before a record. All pods together keep at
// most [Options.Total]; the pods with the most records give way. A pod that is gone is kept for
// [Options.Keep].
//
// # The file
//
// History is best effort: it never stops a node. It survives a restart and kill -9, except for the
// batch that was not yet written (a fraction of a second). After a power loss, what the kernel had not
// written is missing. What cannot be read or written is counted and logged, and becomes a record of the node.
package history
