package journal

import (
	"errors"
	"fmt"
	"syscall"
)

// preparation is what has to be done to the files before the first write is taken. A disk
// that takes no writes leaves some of it for later; each step is done once.
type preparation struct {
	decision
	opened bool // the store
}

// prepare repairs the files, opens the store and makes the commit that marks the journal
// as open. Only the leader may call it, and Open, while d is known to no other goroutine.
func (d *Durable) prepare() error {
	err := d.tryPrepare()
	d.statsMu.Lock()
	before := d.refused
	d.refused = err
	d.statsMu.Unlock()
	switch {
	case err == nil && before != nil:
		d.logger.Info("journal takes writes again", "node", d.options.NodeName, "file", d.path)
	case err != nil && before == nil && takesNoWrites(err):
		d.logger.Error("journal is open for reading only until its disk takes writes", "node", d.options.NodeName,
			"file", d.path, "err", writeError(d.path, err))
	}
	return err
}

func (d *Durable) tryPrepare() (err error) {
	if err := d.repair(d.todo); err != nil {
		return err
	}
	if !d.todo.opened {
		if d.store, err = openBolt(d.path); err != nil {
			return err
		}
		d.todo.opened = true
	}
	if err := d.begin(); err != nil {
		return err
	}
	d.todo = nil
	return nil
}

// closeStore closes what was opened.
func (d *Durable) closeStore() error {
	if d.todo != nil && !d.todo.opened {
		return nil
	}
	return d.store.close()
}

// Writable returns nil, or why all writes are refused: the disk has taken none since the
// journal was opened. Each write tries again.
func (d *Durable) Writable() error {
	d.statsMu.Lock()
	defer d.statsMu.Unlock()
	if d.refused == nil {
		return nil
	}
	return writeError(d.path, d.refused)
}

// repair moves damaged files aside and writes the database again where the decision says
// so.
func (d *Durable) repair(todo *preparation) error {
	if todo.copyAside {
		if err := d.moveAside(d.path + copySuffix); err != nil {
			return err
		}
		todo.copyAside = false
	}
	if !todo.rebuild {
		return nil
	}
	temporary := d.path + temporarySuffix
	if err := buildBolt(temporary, d.onDisk); err != nil {
		_ = d.env.disk.remove(temporary) // building begins by removing it as well
		return err
	}
	if todo.databaseAside {
		if err := d.moveAside(d.path); err != nil {
			return err
		}
		todo.databaseAside = false
	}
	if err := install(d.env.disk, temporary, d.path); err != nil {
		return err
	}
	todo.rebuild = false
	return nil
}

func (d *Durable) moveAside(path string) error {
	kept := path + asideSuffix + d.env.now().UTC().Format("20060102T150405.000Z")
	if err := d.env.disk.rename(path, kept); err != nil {
		return err
	}
	d.logger.Error("journal file is damaged, moved it aside", "file", path, "kept", kept, "node", d.options.NodeName,
		"recovery", d.recovery.String())
	d.recoveryMu.Lock()
	defer d.recoveryMu.Unlock()
	d.recovery.MovedAside = append(d.recovery.MovedAside, kept)
	return nil
}

// begin marks the journal as open and renews the copy, before any write is taken.
func (d *Durable) begin() error {
	opened := d.onDisk.root
	opened.Opened, opened.Clean = d.env.now(), false
	if err := d.commit(opened, nil); err != nil {
		return err
	}
	return d.renewCopy()
}

// takesNoWrites reports whether an error is that of a full or read-only disk.
func takesNoWrites(err error) bool { return outOfSpace(err) || errors.Is(err, syscall.EROFS) }

// notReady is the error of a write that came before the files could be prepared.
func notReady(err error) error {
	return fmt.Errorf("the disk has taken no write since the journal was opened: %w", err)
}
