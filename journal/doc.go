// Package journal is the durable memory of a node: allocations, the state of resizes, final
// statuses that the API server has not accepted yet, and the terminations of containers.
//
// [Open] opens a journal on disk, a [Durable]; [NewMemory] returns one that lasts as long as
// the process. Both are a [Journal]. A manager that needs no journal gets nil.
//
// # Reads and writes
//
// A read is served from memory and never touches the disk. A write goes to the disk first
// (synced), then becomes visible to readers, and is acknowledged last: a caller whose write
// returned nil finds it again after a crash or a power loss. There is no goroutine: among
// the callers that wait, one becomes the leader and commits for all of them, so that
// concurrent writers share the price of one sync.
//
// Every method may be called from any goroutine. Writes block for one or two commits; reads
// do not wait for writes. A write that fails changed nothing in memory, returns an error
// that wraps ErrWrite, and may be tried again. Close waits for the writes under way; after
// it reads still answer from memory and writes return ErrClosed.
//
// Values are copied on the way in and on the way out. Times are kept to the second, as the
// API keeps them.
//
// # Errors
//
// Open fails with [ErrInvalid] (no node name), [ErrInUse], [ErrOtherNode], [ErrNewerFormat],
// [ErrOldFormat], [ErrReadOnly] (the directory is not writable), [ErrPermission], or
// [io/fs.ErrNotExist] (no such directory). A full or read-only disk does not fail it: see
// [Durable.Writable]. Damaged files do not fail it either: see [Durable.Recovery].
// [ErrDamaged] at opening means that the checksums are right and a record still cannot be
// decoded.
//
// A write fails with [ErrInvalid], [ErrClosed], or [ErrWrite], which wraps the cause:
// [ErrNoSpace], [ErrReadOnly], [ErrPermission], or an error of the disk.
//
// # Files
//
// journal.db is an append-only log: a snapshot of the state, then the commits. Beside it
// are journal.db.good, a verified copy of the state for the case that the log is damaged,
// and journal.db.lock. docs/internals/journal.md describes the format, what is guaranteed, what to do
// for each error, and the reasons.
package journal
