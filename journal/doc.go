// Package journal is the durable memory of a node: allocations, the state of resizes, final
// statuses that the API server has not accepted yet, and the terminations seen meanwhile.
//
// # The loop
//
// A read is served from memory and never touches the disk. A write goes to the disk first
// (synced), then becomes visible to readers, and is acknowledged last: a caller whose write
// returned nil finds it again after a crash or a power loss. There is no goroutine: among
// the callers that wait at a moment one becomes the leader and commits for all of them, so
// that concurrent writers share the price of one sync.
//
// # Who may call what
//
// Every method of every Journal may be called from any goroutine. Writes block for one or
// two commits; reads do not wait for writes. A write that fails changed nothing in memory,
// returns an error that wraps ErrWrite, and may be tried again. Close waits for the writes
// under way; after it reads still answer from memory and writes return ErrClosed.
//
// Nothing is aliased: values are copied on the way in and on the way out. Times are kept to
// the second, as the API keeps them.
//
// # Files
//
// Next to journal.db (a bbolt file) live journal.db.good, a verified copy of the whole
// state that takes over when journal.db is damaged, and journal.db.lock. docs/journal.md
// describes the format, what is guaranteed, and what to do for each error.
package journal
