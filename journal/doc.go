// Package journal is the durable memory of a node: allocations, the state of resizes, the final
// statuses of pods that are there, and the terminations of containers.
//
// [Open] opens a journal on disk, a [Durable]; [NewMemory] returns one that lasts as long as the
// process. Both are a [Journal]. Pass nil to a manager that needs no journal.
//
// # Reads and writes
//
// A read is served from memory and never touches the disk. A write is synced to the disk first,
// then becomes visible to readers, and is acknowledged last: a write that returned nil survives a
// crash or a power loss. There is no goroutine: one of the waiting callers becomes the leader and
// commits for all of them, so that concurrent writers share the cost of one sync.
//
// Every method may be called from any goroutine. Writes block for one or two commits; reads do not
// wait for writes. A failed write changes nothing in memory, returns an error that wraps ErrWrite,
// and may be retried. Close waits for the writes under way; after Close, reads still answer from
// memory and writes return ErrClosed.
//
// Values are copied on the way in and on the way out. Times are kept to the second, as in the API.
//
// # Errors
//
// Open fails with [ErrInvalid] (no node name), [ErrInUse], [ErrOtherNode], [ErrNewerFormat],
// [ErrOldFormat], [ErrReadOnly] (the directory is not writable), [ErrPermission], or
// [io/fs.ErrNotExist] (no such directory). Open succeeds on a full or read-only disk: see
// [Durable.Writable]; and with damaged files: see [Durable.Recovery]. [ErrDamaged] at opening means
// that the checksums are right and a record still cannot be decoded.
//
// A write fails with [ErrInvalid], [ErrClosed], or [ErrWrite], which wraps the cause:
// [ErrNoSpace], [ErrReadOnly], [ErrPermission], or an error of the disk.
//
// # Files
//
// journal.db is an append-only log: a snapshot of the state, then the commits. Beside the log are
// journal.db.good, a verified copy of the state in case the log is damaged, and journal.db.lock.
// docs/internals/journal.md describes the format, the guarantees, what to do for each error, and the
// reasons.
package journal
