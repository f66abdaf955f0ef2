package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// StartPod implements [runtime.Runtime]: it makes the pod's directory and volumes. The
// record is written last, so that a pod is there as a whole or not at all.
func (r *Runtime) StartPod(ctx context.Context, manifest *v1.Pod) error {
	if err := checkUID(manifest.UID); err != nil {
		return err
	}
	r.mu.Lock()
	known := r.pods[manifest.UID]
	r.mu.Unlock()
	if known != nil {
		return r.remake(ctx, known)
	}
	now := time.Now()
	p := &pod{dir: r.podDir(manifest.UID), manifest: manifest.DeepCopy(), createdAt: now, placeSince: now, boot: r.boot}
	if err := r.mayMake(p); err != nil {
		return fmt.Errorf("process: start pod %s: %w", manifest.UID, err)
	}
	p.group = r.takeGroup()
	var contents *podvolume.Contents
	err := p.make(func() (err error) {
		contents, err = r.fill(ctx, p)
		return err
	})
	if err != nil {
		r.giveGroup(p)
		return errors.Join(fmt.Errorf("process: start pod %s: %w", manifest.UID, err), r.cleaner.delete(string(p.dir)))
	}
	r.mu.Lock()
	r.pods[manifest.UID] = p
	r.mu.Unlock()
	r.keeper.Add(manifest.UID, contents)
	r.Notify(manifest.UID)
	return nil
}

// mayMake refuses a pod whose directory is in use for something that must not be lost or
// mixed with.
func (r *Runtime) mayMake(p *pod) error {
	if r.cleaner.has(string(p.dir)) {
		return errors.New("what is left of an earlier pod with this UID is still being deleted")
	}
	if _, err := os.Lstat(p.dir.record()); err == nil {
		return fmt.Errorf("its directory %s has a record that could not be read", p.dir)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.unreadable[p.manifest.UID]; err != nil {
		return fmt.Errorf("its directory %s cannot be used: %w", p.dir, err)
	}
	return r.makeDirs() // New may have found a disk that took no writes
}

// checkUID refuses what could name another directory than one of our own.
func checkUID(uid types.UID) error {
	if uid == "" || uid == "." || uid == ".." || strings.ContainsAny(string(uid), "/\x00") {
		return fmt.Errorf("process: pod UID %q cannot name a directory", uid)
	}
	return nil
}

// make makes the pod on disk; fill is what writes the contents of its volumes.
func (p *pod) make(fill func() error) error {
	if err := p.makeClosed(); err != nil {
		return err
	}
	for _, dir := range []string{p.dir.volumes(), p.dir.containers()} {
		if err := makeDir(dir, traversable); err != nil {
			return err
		}
	}
	if err := errors.Join(p.makeVolumes(), p.makeEtc()); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	if err := record.WriteDurably(p.dir.record(), p.asRecord()); err != nil {
		return err
	}
	return record.SyncDir(filepath.Dir(string(p.dir)))
}

// remake makes what a restart of the machine took away, if there was one.
func (r *Runtime) remake(ctx context.Context, p *pod) error {
	r.mu.Lock()
	if p.boot == r.boot {
		r.mu.Unlock()
		return nil
	}
	if p.group == 0 && r.root {
		p.group = r.podGroups.take() // an earlier release has made the pod, and nothing of it runs
	}
	rec := p.asRecord()
	r.mu.Unlock()
	if err := errors.Join(p.makeClosed(), p.makeVolumes(), p.makeEtc(), r.refill(ctx, p)); err != nil {
		return fmt.Errorf("process: start pod %s again after a restart of the machine: %w", p.manifest.UID, err)
	}
	rec.Boot = r.boot
	if err := record.WriteDurably(p.dir.record(), rec); err != nil {
		return fmt.Errorf("process: start pod %s again after a restart of the machine: %w", p.manifest.UID, err)
	}
	r.mu.Lock()
	p.boot = r.boot
	r.mu.Unlock()
	return nil
}

// RemovePod implements [runtime.Runtime]. The directory is first moved aside, so that a
// removal that is interrupted is finished by the next runtime, and deleted then. The pod is
// forgotten once its directory was moved: what cannot be deleted is deleted later, and
// [Runtime.Problems] lists it until then.
func (r *Runtime) RemovePod(_ context.Context, uid types.UID) error {
	p, err := r.ended(uid, "remove", true)
	if p == nil {
		return err
	}
	r.keeper.Remove(uid)
	r.removePodGroups(uid)
	if err := r.removeDir(string(p.dir)); err != nil {
		r.mu.Lock()
		r.pods[uid] = p // so that the removal can be tried again
		r.mu.Unlock()
		return fmt.Errorf("process: remove pod %s: %w", uid, err)
	}
	for _, c := range p.containers {
		r.letGo(c)
	}
	r.giveGroup(p)
	r.Notify(uid)
	return nil
}

// letGo lets the shim end that still tries to record the exit of a container which is to
// be forgotten.
func (r *Runtime) letGo(c *container) {
	if _, err := r.exits.send(c, control.Request{Forget: true}); err != nil {
		// It gives up by itself when it finds the directory gone.
		r.options.Logger.Debug("shim of a container that is removed cannot be reached", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
	r.removeCgroups(c)
}

// removeCgroups removes what is left of the control groups of an exited container, and those
// of its pod if it was the last one in them.
func (r *Runtime) removeCgroups(c *container) {
	r.grouping.Lock()
	defer r.grouping.Unlock()
	if err := cgroup.Remove(c.spec.Cgroup); err != nil {
		r.options.Logger.Warn("removing control groups failed", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
	for _, dir := range c.spec.Cgroup {
		_ = os.Remove(filepath.Dir(dir)) // fails while another container is in it
	}
}

// Pod implements [runtime.Runtime].
func (r *Runtime) Pod(_ context.Context, uid types.UID) (runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.pods[uid]
	if !known {
		return runtime.Pod{}, fmt.Errorf("process: pod %s: %w", uid, runtime.ErrNotFound)
	}
	return p.snapshot(r.options.Addresses()), nil
}

// Pods implements [runtime.Runtime].
func (r *Runtime) Pods(context.Context) ([]runtime.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []runtime.Pod
	for _, uid := range slices.Sorted(maps.Keys(r.pods)) {
		all = append(all, r.pods[uid].snapshot(r.options.Addresses()))
	}
	return all, nil
}
