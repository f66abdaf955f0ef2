package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// preparation is what has to be done to the files before the first write. A disk that
// accepts no writes leaves some of it for later; each step is done once.
type preparation struct {
	logAside, copyAside bool // keep the damaged file under another name
	rewritten           bool // the log
}

// ready makes sure that there is a log to append to. Only the leader may call it.
func (d *Durable) ready() error {
	if d.todo == nil && d.log != nil {
		return nil
	}
	if err := d.prepare(); err != nil {
		return fmt.Errorf("the log cannot be written again: %w", err)
	}
	return nil
}

// prepare writes a new log with the state that memory has, and keeps the note that Writable
// reports. Only the leader may call it, and Open, while no other goroutine knows d.
func (d *Durable) prepare() error {
	err := d.tryPrepare()
	d.statsMu.Lock()
	before := d.refused
	d.refused = err
	d.statsMu.Unlock()
	switch {
	case err == nil && before != nil:
		d.logger.Info("journal is writable again", "node", d.options.NodeName, "file", d.path)
	case err != nil && before == nil && takesNoWrites(err):
		d.logger.Error("journal is read-only until its disk accepts writes", "node", d.options.NodeName,
			"file", d.path, "err", writeError(d.path, err))
	}
	return err
}

// tryPrepare renews the copy before the first write is taken, so that a copy which is
// marked as closed holds everything.
func (d *Durable) tryPrepare() error {
	todo := d.todo
	if todo == nil {
		return d.compact()
	}
	if todo.copyAside {
		if err := d.keepAside(d.path + copySuffix); err != nil {
			return err
		}
		todo.copyAside = false
	}
	if !todo.rewritten {
		if err := d.rewrite(d.keepDamagedLog); err != nil {
			return err
		}
		todo.rewritten = true
	}
	if err := d.renewCopy(); err != nil {
		return err
	}
	d.todo = nil
	return nil
}

// rewrite replaces the log by one that holds the state that memory has. If it fails, the
// log that was in use stays in use, unless its name may refer to the new file.
func (d *Durable) rewrite(before func() error) error {
	img := image{header: d.onDisk.header, records: d.onDisk.records}
	img.header.Sequence, img.header.Committed = d.sequence+1, d.env.now()
	log, replaced, err := createLog(d.env.disk, d.path, img, d.env.reserve, before)
	if replaced {
		d.sequence++
		_ = d.closeLog() // what it holds is in the new one
	}
	if err != nil {
		return err
	}
	d.log, d.onDisk.header = log, img.header
	d.count(func(s *Stats) { s.Sequence, s.Records = img.header.Sequence, len(img.records) })
	return nil
}

// Writable returns nil, or why all writes fail: the log for writes could not be created on the
// disk. Each write retries.
func (d *Durable) Writable() error {
	d.statsMu.Lock()
	defer d.statsMu.Unlock()
	if d.refused == nil {
		return nil
	}
	return writeError(d.path, d.refused)
}

func (d *Durable) keepDamagedLog() error {
	if !d.todo.logAside {
		return nil
	}
	err := d.keepAside(d.path)
	if err == nil {
		d.todo.logAside = false
	}
	return err
}

// keepAside gives a damaged file a second name, before a new file takes its first: there
// is no moment without a file.
func (d *Durable) keepAside(path string) error {
	kept := path + asideSuffix + d.env.now().UTC().Format("20060102T150405.000Z")
	err := d.env.disk.link(path, kept)
	for errors.Is(err, fs.ErrExist) { // the clock was set back
		kept += "-again"
		err = d.env.disk.link(path, kept)
	}
	if err != nil {
		return err
	}
	d.logger.Error("journal file is damaged, kept under another name", "file", path, "kept", kept, "node", d.options.NodeName,
		"recovery", d.recovery.String())
	d.recoveryMu.Lock()
	defer d.recoveryMu.Unlock()
	d.recovery.MovedAside = append(d.recovery.MovedAside, kept)
	return nil
}

// takesNoWrites reports whether an error is that of a full or read-only disk.
func takesNoWrites(err error) bool { return outOfSpace(err) || errors.Is(err, syscall.EROFS) }
