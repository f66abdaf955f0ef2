package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/mounts"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// Pauses between attempts to remove a pod.
const (
	firstCleanUp = time.Second
	lastCleanUp  = 5 * time.Minute
)

// Problems implements [runtime.ProblemReporter]: what the runtime could not remove or read in
// its directory, in order of the paths.
func (r *Runtime) Problems() []runtime.Problem {
	r.problems.mu.Lock()
	defer r.problems.mu.Unlock()
	var all []runtime.Problem
	for _, path := range slices.Sorted(maps.Keys(r.problems.byPath)) {
		all = append(all, r.problems.byPath[path])
	}
	return all
}

// problems is the list that Problems returns.
type problems struct {
	mu     sync.Mutex // guards byPath
	byPath map[string]runtime.Problem
}

// set reports whether the problem is new, so that it is logged once.
func (p *problems) set(path string, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(path, err)
}

// add needs mu.
func (p *problems) add(path string, err error) bool {
	old, known := p.byPath[path]
	since := time.Now()
	if known {
		since = old.Since
	}
	if p.byPath == nil {
		p.byPath = map[string]runtime.Problem{}
	}
	p.byPath[path] = runtime.Problem{Path: path, Err: err, Since: since}
	return !known || old.Err.Error() != err.Error()
}

// setUnlessGone is set for what could not be deleted. setUnlessGone reports whether that is still there, and
// whether the problem is new. Another goroutine may delete the same directory meanwhile: it calls
// solved when nothing is left, and a problem that was set after that would stay.
func (p *problems) setUnlessGone(path string, err error) (there, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, statErr := os.Lstat(path); errors.Is(statErr, fs.ErrNotExist) {
		return false, false
	}
	return true, p.add(path, err)
}

func (p *problems) solved(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byPath, path)
}

// report logs a problem, unless it is an old one, and keeps it for Problems.
func (r *Runtime) report(what, path string, err error) {
	if r.problems.set(path, err) {
		r.options.Logger.Error(what, "path", path, "err", err)
	}
}

// removeDir removes a directory that must not be found half removed. It is first given up,
// which can fail, and then deleted. What cannot be deleted now is deleted later.
func (r *Runtime) removeDir(dir string) error {
	aside, err := r.giveUp(dir)
	if err != nil || aside == "" {
		return err
	}
	if !r.deleted(aside) {
		r.deleteLater(aside)
	}
	return nil
}

// deleted deletes a directory that was given up, and reports whether nothing of it is left.
func (r *Runtime) deleted(dir string) bool {
	if err := r.cleaner.delete(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		there, isNew := r.problems.setUnlessGone(dir, err)
		if isNew {
			r.options.Logger.Error("cannot delete what is left of a pod, will retry", "path", dir, "err", err)
		}
		if there {
			return false
		}
	}
	r.problems.solved(dir)
	return true
}

// deleteLater hands a directory that was given up to the cleaner.
func (r *Runtime) deleteLater(dir string) {
	if filepath.Dir(dir) != r.removingDir() {
		r.cleaner.add(dir)
	}
	r.cleaner.wake()
}

// giveUp marks a directory for deletion by moving it, and returns its new path, or "" if it does
// not exist. A full disk may have no room for a new name; then the directory stays in place,
// without the record that made it valid.
func (r *Runtime) giveUp(dir string) (string, error) {
	parent := filepath.Base(filepath.Dir(dir))
	aside := filepath.Join(r.removingDir(), fmt.Sprintf("%s-%s-%d", parent, filepath.Base(dir), time.Now().UnixNano()))
	err := os.Rename(dir, aside)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		return aside, syncBoth(filepath.Dir(dir), r.removingDir())
	}
	if errors.Is(err, unix.EROFS) {
		return "", err
	}
	for _, path := range []string{podDir(dir).record(), record.Dir(dir).Spec()} {
		if removeErr := os.Remove(path); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			return "", errors.Join(err, removeErr)
		}
	}
	return dir, record.SyncDir(dir)
}

func syncBoth(a, b string) error { return errors.Join(record.SyncDir(a), record.SyncDir(b)) }

// removeAll deletes a directory with all that is in it, whatever the permissions. removeAll does
// not go into other file systems: what is mounted inside is unmounted, and if that is not
// possible nothing is deleted.
func removeAll(dir string) error {
	err := mounts.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	openDirs(dir)
	return mounts.RemoveAll(dir)
}

// openDirs lets the owner of directories delete what is in them. What fails shows when
// deleting fails.
func openDirs(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&0o700 != 0o700 {
			_ = os.Chmod(path, info.Mode().Perm()|0o700)
		}
		return nil
	})
}

// cleaner deletes in the background what could not be deleted at once.
type cleaner struct {
	dirty chan struct{} // capacity 1: a look that is due is enough for all

	mu      sync.Mutex // guards what follows
	inPlace map[string]bool
	groups  map[types.UID]bool     // of pods, that could not be removed
	remove  func(dir string) error // removeAll, unless a test has another one
}

func newCleaner() *cleaner {
	return &cleaner{dirty: make(chan struct{}, 1), inPlace: map[string]bool{}, groups: map[types.UID]bool{}, remove: removeAll}
}

func (c *cleaner) delete(dir string) error {
	c.mu.Lock()
	remove := c.remove
	c.mu.Unlock()
	return remove(dir)
}

// wake makes the cleaner look again.
func (c *cleaner) wake() {
	wake.Up(c.dirty)
}

// add makes the cleaner delete a directory that could not be moved to removing/.
func (c *cleaner) add(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inPlace[dir] = true
}

func (c *cleaner) done(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inPlace, dir)
}

// addGroups makes the cleaner remove the control groups of a pod.
func (c *cleaner) addGroups(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[uid] = true
}

func (c *cleaner) doneGroups(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, uid)
}

// groupsOf are the pods whose control groups are still to be removed.
func (c *cleaner) groupsOf() []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.groups))
}

// has reports whether a directory is still to be deleted where it is.
func (c *cleaner) has(dir string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inPlace[dir]
}

func (c *cleaner) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.inPlace))
}

// cleanUp deletes what is to be deleted until ctx is done, with pauses that grow while
// something cannot be.
func (r *Runtime) cleanUp(ctx context.Context) {
	pause := firstCleanUp
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-r.cleaner.dirty:
			pause = firstCleanUp
		}
		if r.cleanOnce(ctx) {
			again.Reset(pause)
			pause = min(2*pause, lastCleanUp)
		}
	}
}

// removePodGroups removes the control groups of a pod, now or later: the kernel keeps a group busy for a while after its last process.
func (r *Runtime) removePodGroups(uid types.UID) {
	if !r.groupsRemoved(uid) {
		r.cleaner.addGroups(uid)
		r.cleaner.wake()
	}
}

// groupsRemoved removes the control groups of a pod, and reports whether none is left.
func (r *Runtime) groupsRemoved(uid types.UID) bool {
	path := "control group of pod " + string(uid)
	if err := r.groups.removePod(uid); err != nil {
		r.report("removing the control groups of a pod failed, will retry", path, err)
		return false
	}
	r.problems.solved(path)
	return true
}

// cleanOnce reports whether something could not be deleted.
func (r *Runtime) cleanOnce(ctx context.Context) (left bool) {
	for _, uid := range r.cleaner.groupsOf() {
		if r.groupsRemoved(uid) {
			r.cleaner.doneGroups(uid)
		} else {
			left = true
		}
	}
	todo := r.cleaner.list()
	entries, err := os.ReadDir(r.removingDir())
	if err != nil {
		r.report("cannot look for what is to be deleted, will retry", r.removingDir(), err)
		left = true
	} else {
		r.problems.solved(r.removingDir())
	}
	for _, entry := range entries {
		todo = append(todo, filepath.Join(r.removingDir(), entry.Name()))
	}
	for _, path := range todo {
		if ctx.Err() != nil {
			return true
		}
		if !r.deleted(path) {
			left = true
			continue
		}
		r.cleaner.done(path)
	}
	return left
}
