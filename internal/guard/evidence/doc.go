// Package evidence keeps evidence on disk before a kubelet is restarted: the verdict, its evidence, the last log
// lines, a dump of goroutines, the audit. A restart destroys most of this evidence.
//
//	store, err := keep.New(keep.Options{Dir: "/var/lib/statusd/guard", Parts: []keep.Part{keep.JSON("audit.json", audit)}})
//	dir, err := store.Keep(ctx, guard.Case{...})
//
// Each case is a directory, which appears as a whole or not at all. The store keeps at most [Options.Count]
// cases with [Options.Bytes] in all, and deletes the oldest first. Parts that cannot be read or written are
// missing from the directory and listed in the error.
package evidence
