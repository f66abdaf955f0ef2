// Package evidence keeps evidence on disk before a kubelet is restarted: the verdict, its evidence, the last log
// lines, a dump of goroutines, the audit. What a restart destroys is what a later question needs.
//
//	store, err := keep.New(keep.Options{Dir: "/var/lib/statusd/guard", Parts: []keep.Part{keep.JSON("audit.json", audit)}})
//	dir, err := store.Keep(ctx, guard.Case{...})
//
// Each case is a directory, which appears as a whole or not at all. There are at most [Options.Count] of
// them with [Options.Bytes] in all; the oldest give way. What cannot be read or written is missing, and the
// error says so; the directory has the rest.
package evidence
