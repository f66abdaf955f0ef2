package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// The files of a journal at PATH besides PATH itself.
const (
	copySuffix      = ".good"
	lockSuffix      = ".lock"
	temporarySuffix = ".tmp"
	asideSuffix     = ".corrupt-"
)

// Options of a durable journal.
type Options struct {
	// NodeName is the name of the journal's node; required.
	NodeName string
	// Logger receives a record for each opening, damage and failed copy; nil discards them.
	Logger *slog.Logger
	// LockTimeout is how long to wait for another process to close the journal; 0 is one
	// second.
	LockTimeout time.Duration
	// CopyEvery is after how many commits the verified copy is renewed. 0 means 64, or the
	// number of records if that is more, so that the cost of the copy per commit does not
	// depend on the number of pods.
	CopyEvery int
}

// environment is what tests replace.
type environment struct {
	disk    disk
	formats formats
	now     func() time.Time
	reserve int64 // of a log; 0 is reserveStep
}

// Durable is a journal on disk.
type Durable struct {
	methods
	path    string
	options Options
	logger  *slog.Logger
	env     environment
	lock    *lock

	recoveryMu sync.Mutex // guards recovery.MovedAside; the rest is set by open
	recovery   Recovery

	queue *queue

	// The rest belongs to the leader (see queue).
	log       *logFile // nil until a file can be trusted with the next commit
	todo      *preparation
	next      *tables // published, and what the commit under way adds
	onDisk    image   // what the last successful commit left
	sequence  uint64  // of the last attempt, successful or not
	sinceCopy int     // commits

	statsMu sync.Mutex // guards stats and refused
	stats   Stats
	refused error // why writes are refused until the disk takes them
}

// Stats are counts since the journal was opened.
type Stats struct {
	// Writes counts acknowledged writes, Commits the commits that contain them.
	Writes, Commits uint64
	// FailedWrites counts writes that were not acknowledged.
	FailedWrites uint64
	// Copies counts written copies of the state; FailedCopies counts failed attempts, which are
	// retried.
	Copies, FailedCopies uint64
	// Sequence is the number of the newest commit, over all openings.
	Sequence uint64
	// Records and Bytes are the size of the journal.
	Records int
	Bytes   int64
}

// Open opens the journal at path or creates one. The directory must exist. Call Recovery for the
// state that Open found. The caller must Close the journal.
//
// A full or read-only disk does not fail Open: the contents can be read, and writes fail with
// [ErrNoSpace] or [ErrReadOnly] until the disk accepts them. Until then Writable returns the error.
func Open(path string, options Options) (*Durable, error) {
	return open(path, options, environment{disk: osDisk{}, formats: currentFormats(), now: time.Now})
}

func open(path string, options Options, env environment) (*Durable, error) {
	if options.NodeName == "" {
		return nil, fmt.Errorf("journal: open %s: %w: the node name is empty", path, ErrInvalid)
	}
	if options.LockTimeout == 0 {
		options.LockTimeout = time.Second
	}
	if env.reserve == 0 {
		env.reserve = reserveStep
	}
	logger := options.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	deadline := time.Now().Add(options.LockTimeout)
	lock, err := takeLock(path+lockSuffix, deadline)
	if err != nil {
		return nil, openError(path, err)
	}
	// A process that is killed lets go of its files one after the other.
	if !await(deadline, func() bool { return !isLocked(path) }) {
		return nil, openError(path, errors.Join(ErrInUse, lock.release()))
	}
	d := &Durable{path: path, options: options, logger: logger, env: env, lock: lock,
		queue: newQueue()}
	d.submit = d.write
	if err := d.start(); err != nil {
		return nil, openError(path, errors.Join(err, lock.release()))
	}
	return d, nil
}

// start reads the files, decides which state holds, and prepares the files for writes if
// the disk accepts any.
func (d *Durable) start() error {
	decision, err := d.inspect()
	if err != nil {
		return err
	}
	d.next, err = decision.image.tables()
	if err != nil {
		return err
	}
	d.recovery = decision.recovery
	d.adopt(decision.image)
	d.todo = &preparation{logAside: decision.logAside, copyAside: decision.copyAside}
	if err := d.prepare(); err != nil && !takesNoWrites(err) {
		_ = d.closeLog() // this unlocks it
		return err
	}
	d.published = d.next.clone()
	d.report()
	return nil
}

func (d *Durable) inspect() (decision, error) {
	log, err := d.find(d.path)
	if err != nil {
		return decision{}, err
	}
	backup, err := d.find(d.path + copySuffix)
	if err != nil {
		return decision{}, err
	}
	return decide(log, backup, d.env.formats, d.options.NodeName)
}

// find reads a file. A file that cannot be read counts as damaged.
func (d *Durable) find(path string) (found, error) {
	data, err := d.env.disk.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}, nil
	case errors.Is(err, syscall.EIO):
		return found{exists: true, damage: damaged("%v", err)}, nil
	case err != nil:
		return found{}, err
	}
	return found{exists: true, data: data}, nil
}

// adopt makes the image the state that the next commit builds on.
func (d *Durable) adopt(img image) {
	d.onDisk = image{header: img.header, records: make(map[recordKey][]byte, len(img.records))}
	for k, record := range img.records {
		d.onDisk.records[k] = bytes.Clone(record) // the file it is a part of can be freed
	}
	h := &d.onDisk.header
	h.Format, h.Node = d.env.formats.current, d.options.NodeName
	h.Opened, h.Clean = d.env.now(), false
	if h.ID == "" {
		h.ID = string(uuid.NewUUID())
	}
	// Above all sequence numbers found, so that an older file never looks newer.
	d.sequence = max(img.header.Sequence, d.recovery.Seen)
}

func (d *Durable) report() {
	level := slog.LevelInfo
	if d.recovery.MayHaveLost {
		level = slog.LevelError
	} else if len(d.recovery.Damage) > 0 {
		level = slog.LevelWarn
	}
	d.logger.Log(context.Background(), level, "journal opened", "node", d.options.NodeName, "file", d.path,
		"records", len(d.onDisk.records), "recovery", d.recovery.String())
}

// Recovery returns the state that Open found, and what Open did.
func (d *Durable) Recovery() Recovery {
	d.recoveryMu.Lock()
	defer d.recoveryMu.Unlock()
	r := d.recovery
	r.Damage, r.MovedAside = slices.Clone(r.Damage), slices.Clone(r.MovedAside)
	return r
}

// Stats returns the counts, and the size of the log file.
func (d *Durable) Stats() Stats {
	d.statsMu.Lock()
	stats := d.stats
	d.statsMu.Unlock()
	if info, err := os.Stat(d.path); err == nil {
		stats.Bytes = info.Size()
	}
	return stats
}

func (d *Durable) count(change func(*Stats)) {
	d.statsMu.Lock()
	defer d.statsMu.Unlock()
	change(&d.stats)
}

// Close commits the waiting writes, marks the journal as closed, renews the copy and releases the
// lock.
func (d *Durable) Close() error {
	if !d.queue.close() {
		return nil
	}
	d.queue.lead()
	defer d.queue.follow()
	if batch := d.queue.take(); len(batch) > 0 {
		d.serve(batch)
	}
	err := d.end()
	if err = errors.Join(err, d.closeLog(), d.lock.release()); err != nil {
		return fmt.Errorf("journal: close %s: %w", d.path, err)
	}
	return nil
}

func (d *Durable) end() error {
	if d.todo != nil {
		return nil // no write was accepted, and the files found are unchanged
	}
	if err := d.ready(); err != nil {
		return err
	}
	closed := d.onDisk.header
	closed.Clean, closed.Closed = true, d.env.now()
	if err := d.commit(closed, nil); err != nil {
		return err
	}
	return d.renewCopy()
}

func (d *Durable) closeLog() error {
	if d.log == nil {
		return nil
	}
	err := d.log.close()
	d.log = nil
	return err
}

// renewCopy writes the state to the copy, which holds a snapshot alone.
func (d *Durable) renewCopy() error {
	d.sinceCopy = 0
	l, _, err := createLog(d.env.disk, d.path+copySuffix, d.onDisk, minReserve, func() error { return nil })
	if err == nil {
		err = l.close()
	}
	d.count(func(s *Stats) {
		if err != nil {
			s.FailedCopies++
		} else {
			s.Copies++
		}
	})
	if err != nil {
		return fmt.Errorf("copy to %s: %w", filepath.Base(d.path)+copySuffix, err)
	}
	return nil
}
