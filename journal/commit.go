package journal

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// minCopyEvery is the least number of commits between two copies, unless asked otherwise.
const minCopyEvery = 64

// queue gathers the writes that wait for a commit. The leader takes all of them, commits
// them together, and wakes their callers. Callers that arrive meanwhile form the next
// batch, so that a caller waits for at most one commit before its own.
type queue struct {
	leadership chan struct{} // capacity 1: the caller that put the token in leads
	mu         sync.Mutex    // guards the rest
	waiting    []*request
	closed     bool
}

// request is a write that waits.
type request struct {
	write func(*edit)
	done  chan error // capacity 1: the leader never waits for the caller
}

func newQueue() *queue {
	return &queue{leadership: make(chan struct{}, 1)}
}

func (q *queue) lead()   { q.leadership <- struct{}{} }
func (q *queue) follow() { <-q.leadership }

func (q *queue) add(r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return fmt.Errorf("journal: write: %w", ErrClosed)
	}
	q.waiting = append(q.waiting, r)
	return nil
}

func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.waiting
	q.waiting = nil
	return batch
}

// close returns false if the queue was closed before.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.closed
	q.closed = true
	return !was
}

// write queues the write and waits until a leader has served it, or becomes the leader.
func (d *Durable) write(w func(*edit)) error {
	r := &request{write: w, done: make(chan error, 1)}
	if err := d.queue.add(r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case d.queue.leadership <- struct{}{}:
		if batch := d.queue.take(); len(batch) > 0 { // it is empty if another leader was faster
			d.serve(batch)
			d.copyIfDue()
		}
		d.queue.follow()
		return <-r.done // in this batch, or in an earlier one
	}
}

// serve commits a batch and wakes its callers. Only the leader may call it.
func (d *Durable) serve(batch []*request) {
	e := &edit{tables: d.next}
	for _, r := range batch {
		r.write(e)
	}
	err := d.persist(e.changes)
	if err != nil {
		e.rollback()
		err = writeError(d.path, err)
		d.logger.Error("journal write failed", "node", d.options.NodeName, "writes", len(batch), "err", err)
		d.count(func(s *Stats) { s.FailedWrites += uint64(len(batch)) })
	} else {
		d.publish(e.changes)
		d.count(func(s *Stats) { s.Writes += uint64(len(batch)) })
	}
	for _, r := range batch {
		r.done <- err
	}
}

func (d *Durable) publish(changes []change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range changes {
		d.published.apply(c)
	}
}

// persist writes the records that the changes touched, as they are in d.next. Records that
// did not change cost nothing, and if none did there is no commit.
func (d *Durable) persist(changes []change) error {
	if err := d.ready(); err != nil {
		return err
	}
	touched := make(map[recordKey]bool, len(changes))
	var writes []write
	for _, c := range changes {
		if touched[c.recordKey] {
			continue
		}
		touched[c.recordKey] = true
		record, err := d.record(c.recordKey)
		if err != nil {
			return err
		}
		if !bytes.Equal(record, d.onDisk.records[c.recordKey]) {
			writes = append(writes, write{c.recordKey, record})
		}
	}
	if len(writes) == 0 {
		return nil
	}
	return d.commit(d.onDisk.header, writes)
}

func (d *Durable) record(k recordKey) ([]byte, error) {
	value := d.next.value(k)
	if value == nil {
		return nil, nil
	}
	return encode(k, value)
}

// commit appends an entry to the log. If that fails, the entry may yet be on the disk, in
// whole or in part. So the log is not used again: the next commit begins with a new file,
// which takes the entry back, and its number is not used again.
func (d *Durable) commit(h header, writes []write) error {
	h.Whole, h.Committed = false, d.env.now()
	data, err := d.fit(entry{h, writes})
	if err != nil {
		return err
	}
	d.sequence++
	if err := d.log.append(data); err != nil {
		_ = d.closeLog() // it is not used again
		return err
	}
	h.Sequence = d.sequence
	d.onDisk.apply(entry{h, writes})
	d.sinceCopy++
	d.count(func(s *Stats) {
		s.Commits++
		s.Sequence, s.Records = h.Sequence, len(d.onDisk.records)
	})
	return nil
}

// fit encodes an entry and makes room for it.
func (d *Durable) fit(e entry) ([]byte, error) {
	onlyDeletes := !slices.ContainsFunc(e.writes, func(w write) bool { return w.record != nil })
	e.header.Sequence = d.sequence + 1
	data, err := e.encode()
	if err != nil || d.log.fits(int64(len(data)), onlyDeletes) {
		return data, err
	}
	if d.log.outgrown() {
		if err := d.compact(); err != nil {
			d.logger.Warn("journal compaction failed, trying again later", "node", d.options.NodeName, "file", d.path, "err", err)
			if d.log == nil {
				return nil, err
			}
		}
	}
	if !d.log.fits(int64(len(data)), onlyDeletes) {
		if err := d.log.extend(d.env.reserve + int64(len(data))); err != nil {
			if !takesNoWrites(err) {
				_ = d.closeLog() // a sync failed
			}
			return nil, err
		}
	}
	e.header.Sequence = d.sequence + 1 // compaction takes a number
	return e.encode()
}

// compact writes the state to a new log, and to the copy, so that damage of the snapshot
// that the log begins with loses nothing.
func (d *Durable) compact() error {
	if err := d.rewrite(func() error { return nil }); err != nil {
		return err
	}
	d.copyOrWarn()
	return nil
}

// copyIfDue renews the copy after a number of commits.
func (d *Durable) copyIfDue() {
	every := d.options.CopyEvery
	if every == 0 {
		every = max(minCopyEvery, len(d.onDisk.records))
	}
	if d.sinceCopy >= every {
		d.copyOrWarn()
	}
}

func (d *Durable) copyOrWarn() {
	if err := d.renewCopy(); err != nil {
		d.logger.Warn("journal copy failed, trying again later", "node", d.options.NodeName, "file", d.path, "err", err)
	}
}
