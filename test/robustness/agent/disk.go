package agent

import (
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// Behavior is how the disk of the journal behaves.
type Behavior string

const (
	Healthy  Behavior = ""
	Slow     Behavior = "slow"      // a second for each write
	Hung     Behavior = "hung"      // no write ends before the disk is healthy again
	Full     Behavior = "full"      // each write fails
	ReadOnly Behavior = "read-only" // each write fails
)

// slowWrite is what a write takes on a slow disk.
const slowWrite = time.Second

// disk is a journal on a disk that misbehaves: what it acknowledges is on the real disk, as ever.
type disk struct {
	status.Journal

	mu      sync.Mutex // guards what follows
	is      Behavior
	changed chan struct{} // closed when the behavior changes
}

func newDisk(j status.Journal) *disk { return &disk{Journal: j, changed: make(chan struct{})} }

// become changes the behavior.
func (d *disk) become(b Behavior) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.is = b
	close(d.changed)
	d.changed = make(chan struct{})
}

// write does a write, if and when the disk lets it.
func (d *disk) write(perform func() error) error {
	for {
		d.mu.Lock()
		is, changed := d.is, d.changed
		d.mu.Unlock()
		switch is {
		case Full:
			return fmt.Errorf("%w: %w", journal.ErrWrite, journal.ErrNoSpace)
		case ReadOnly:
			return fmt.Errorf("%w: %w", journal.ErrWrite, journal.ErrReadOnly)
		case Hung:
			<-changed
			continue
		case Slow:
			time.Sleep(slowWrite)
		}
		return perform()
	}
}

func (d *disk) SetFinal(uid types.UID, final podstatus.Final) error {
	return d.write(func() error { return d.Journal.SetFinal(uid, final) })
}

func (d *disk) RecordTermination(uid types.UID, id string, how v1.ContainerStateTerminated) error {
	return d.write(func() error { return d.Journal.RecordTermination(uid, id, how) })
}

func (d *disk) RetainTerminations(uid types.UID, keep func(string) bool) error {
	return d.write(func() error { return d.Journal.RetainTerminations(uid, keep) })
}

func (d *disk) SetPodAllocation(uid types.UID, a podstatus.Allocation) error {
	return d.write(func() error { return d.Journal.SetPodAllocation(uid, a) })
}

func (d *disk) SetResizeConditions(uid types.UID, c podstatus.ResizeConditions) error {
	return d.write(func() error { return d.Journal.SetResizeConditions(uid, c) })
}

func (d *disk) RemovePod(uid types.UID) error {
	return d.write(func() error { return d.Journal.RemovePod(uid) })
}

func (d *disk) RetainPods(keep func(types.UID) bool) (removed int, err error) {
	err = d.write(func() error {
		removed, err = d.Journal.RetainPods(keep)
		return err
	})
	return removed, err
}
