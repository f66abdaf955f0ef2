package worker

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// Reclaim deletes the files of ended pods, logs included, because the disk is full. Their records
// stay. Reclaim returns the errors of files that could not be deleted.
func (w *Workers) Reclaim(ctx context.Context) error {
	var problems []error
	for _, uid := range w.ended() {
		if r, can := w.opts.Runtime.(runtime.VolumeRemover); can {
			problems = append(problems, r.RemoveVolumes(ctx, uid))
		}
		if r, can := w.opts.Runtime.(runtime.LogRemover); can {
			problems = append(problems, r.RemoveLogs(ctx, uid))
		}
	}
	return errors.Join(problems...)
}

// ended returns the pods without running containers.
func (w *Workers) ended() []types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []types.UID
	for uid, p := range w.pods {
		if p.inbox.stage >= stopped {
			all = append(all, uid)
		}
	}
	return all
}
