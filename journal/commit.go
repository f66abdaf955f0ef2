package journal

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// minCopyEvery is the least number of commits between two copies, unless asked otherwise.
const minCopyEvery = 64

// queue gathers the writes that wait for a commit. Whoever holds the leadership takes all
// of them, commits them together, and wakes their callers. Callers that come meanwhile
// form the next batch, so that a commit under way is the only thing that anyone waits for.
type queue struct {
	leadership chan struct{} // capacity 1: who put the one token in leads
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

// write queues the write and waits until a leader has served it, leading if nobody does.
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
	if d.fault != nil {
		return d.fault
	}
	if d.todo != nil {
		if err := d.prepare(); err != nil {
			return notReady(err)
		}
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
	if len(writes) == 0 && len(d.suspect) == 0 {
		return nil
	}
	return d.commit(d.onDisk.root, writes)
}

func (d *Durable) record(k recordKey) ([]byte, error) {
	value := d.next.value(k)
	if value == nil {
		return nil, nil
	}
	return encode(k, value)
}

// commit writes the records under a root record that describes the result. A commit that
// failed may yet be on the disk, in whole: its number is not used again, and the next one
// writes its records once more, as they should be.
func (d *Durable) commit(r root, writes []write) error {
	writes = d.withSuspects(writes)
	d.sequence++
	r.Sequence, r.Committed = d.sequence, d.env.now()
	sum := d.describe(&r, writes)
	if err := d.store.commit(append(writes, write{rootRecord, r.seal()})); err != nil {
		for _, w := range writes {
			d.suspect[w.recordKey] = true
		}
		if errors.Is(err, errFault) {
			d.retire(err)
		}
		return err
	}
	clear(d.suspect)
	d.onDisk.apply(r, writes)
	d.sum = sum
	d.sinceCopy++
	d.count(func(s *Stats) {
		s.Commits++
		s.Sequence, s.Records = r.Sequence, r.Records
	})
	return nil
}

// describe makes the root describe the records as they are after the writes, at a cost that
// does not depend on how many there are.
func (d *Durable) describe(r *root, writes []write) digest {
	sum, count := d.sum, len(d.onDisk.records)
	for _, w := range writes {
		if old, ok := d.onDisk.records[w.recordKey]; ok {
			sum.toggle(recordDigest(w.recordKey, old))
			count--
		}
		if w.record != nil {
			sum.toggle(recordDigest(w.recordKey, w.record))
			count++
		}
	}
	r.Records, r.Digest = count, sum.String()
	return sum
}

func (d *Durable) withSuspects(writes []write) []write {
	if len(d.suspect) == 0 {
		return writes
	}
	written := map[recordKey]bool{}
	for _, w := range writes {
		written[w.recordKey] = true
	}
	for k := range d.suspect {
		if !written[k] {
			writes = append(writes, write{k, d.onDisk.records[k]})
		}
	}
	return writes
}

// retire ends writing after a fault of the store, and saves what memory knows, so that the
// next opening has a copy with everything that was acknowledged.
func (d *Durable) retire(fault error) {
	d.fault = fault
	err := d.renewCopy()
	d.logger.Error("journal store failed, reads go on and writes are refused until the restart",
		"node", d.options.NodeName, "file", d.path, "saved", err == nil, "err", errors.Join(fault, err))
}

func (d *Durable) copyIfDue() {
	every := d.options.CopyEvery
	if every == 0 {
		every = max(minCopyEvery, len(d.onDisk.records))
	}
	if d.sinceCopy < every {
		return
	}
	if err := d.renewCopy(); err != nil {
		d.logger.Warn("journal copy failed, trying again later", "node", d.options.NodeName, "file", d.path, "err", err)
	}
}
