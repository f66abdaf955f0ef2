package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// store is where commits go. A commit is all or nothing after a crash; after an error it
// may have happened, but never in part.
type store interface {
	commit(writes []write) error
	close() error
}

// write puts or, with a nil record, deletes one record.
type write struct {
	recordKey
	record []byte
}

// errFault says that the store did what it must not do, after which it cannot be used.
var errFault = errors.New("store fault")

// boltStore writes through bbolt. It never reads: memory holds everything.
type boltStore struct{ db *bolt.DB }

// boltOptions: without a freelist on disk there is none to be damaged, and a commit is
// shorter; the fixed page size makes the file independent of the machine that wrote it.
func boltOptions() *bolt.Options {
	return &bolt.Options{
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
		PageSize:       pageSize,
		NoStatistics:   true,
	}
}

// openBolt opens a file that readBolt has accepted.
func openBolt(path string) (boltStore, error) {
	var s boltStore
	err := guarded(func() (err error) {
		options := boltOptions()
		options.Timeout = lockPoll
		s.db, err = bolt.Open(path, 0o600, options)
		if errors.Is(err, bolterrors.ErrTimeout) { // a bbolt tool: statusd itself holds our own lock
			err = ErrInUse
		}
		return err
	})
	return s, err
}

// buildBolt writes a new file that holds the image. Nothing is synced: the caller does
// that before it gives the file its name.
func buildBolt(path string, img image) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	writes := []write{{rootRecord, img.root.seal()}}
	for k, record := range img.records {
		writes = append(writes, write{k, record})
	}
	return guarded(func() error {
		options := boltOptions()
		options.NoSync = true
		db, err := bolt.Open(path, 0o600, options)
		if err != nil {
			return err
		}
		err = db.Update(func(tx *bolt.Tx) error {
			for _, name := range append([]kind{metaBucket}, kinds()...) {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			return put(tx, writes)
		})
		return errors.Join(err, db.Close())
	})
}

func (s boltStore) commit(writes []write) error {
	return guarded(func() error {
		return s.db.Update(func(tx *bolt.Tx) error { return put(tx, writes) })
	})
}

func (s boltStore) close() error { return guarded(s.db.Close) }

func put(tx *bolt.Tx, writes []write) error {
	for _, w := range writes {
		bucket := tx.Bucket([]byte(w.kind))
		if bucket == nil {
			return fmt.Errorf("%w: bucket %s is gone", errFault, w.kind)
		}
		var err error
		if w.record == nil {
			err = bucket.Delete([]byte(w.key))
		} else {
			err = bucket.Put([]byte(w.key), w.record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// guarded turns a panic into an error, and with it the fault of reading a mapped file
// whose disk gives an error or whose end was cut off under us.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errFault, p)
		}
	}()
	return f()
}
