package journaltest

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// Failing is a journal whose writes fail on demand. Reads go through. It may be
// used from any goroutine.
type Failing struct {
	journal.Journal
	mu    sync.Mutex // guards cause
	cause error
}

// NewFailing wraps a journal; nothing fails yet.
func NewFailing(j journal.Journal) *Failing { return &Failing{Journal: j} }

// Fail makes every following write return an error that wraps cause and journal.ErrWrite.
// With nil, writes go through again.
func (f *Failing) Fail(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cause = cause
}

func (f *Failing) write(write func() error) error {
	f.mu.Lock()
	cause := f.cause
	f.mu.Unlock()
	if cause != nil {
		return fmt.Errorf("journal: %w: %w", journal.ErrWrite, cause)
	}
	return write()
}

func (f *Failing) SetPodAllocation(podUID types.UID, allocation podstatus.Allocation) error {
	return f.write(func() error { return f.Journal.SetPodAllocation(podUID, allocation) })
}

func (f *Failing) SetResizeConditions(podUID types.UID, conditions podstatus.ResizeConditions) error {
	return f.write(func() error { return f.Journal.SetResizeConditions(podUID, conditions) })
}

func (f *Failing) SetFinal(podUID types.UID, final podstatus.Final) error {
	return f.write(func() error { return f.Journal.SetFinal(podUID, final) })
}

func (f *Failing) DeleteFinal(podUID types.UID) error {
	return f.write(func() error { return f.Journal.DeleteFinal(podUID) })
}

func (f *Failing) RecordTermination(podUID types.UID, containerID string, state v1.ContainerStateTerminated) error {
	return f.write(func() error { return f.Journal.RecordTermination(podUID, containerID, state) })
}

func (f *Failing) RetainTerminations(podUID types.UID, keep func(containerID string) bool) error {
	return f.write(func() error { return f.Journal.RetainTerminations(podUID, keep) })
}

func (f *Failing) DeleteTerminations(podUID types.UID) error {
	return f.write(func() error { return f.Journal.DeleteTerminations(podUID) })
}

func (f *Failing) RemovePod(podUID types.UID) error {
	return f.write(func() error { return f.Journal.RemovePod(podUID) })
}

func (f *Failing) RetainPods(keep func(podUID types.UID) bool) (removed int, err error) {
	err = f.write(func() error {
		removed, err = f.Journal.RetainPods(keep)
		return err
	})
	return removed, err
}
