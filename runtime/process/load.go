package process

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// traversable lets containers of other users reach what is theirs inside, and list
// nothing.
const traversable = 0o711

// private is for what only statusd reads.
const private = 0o700

// podRecord is what pod.json holds.
type podRecord struct {
	CreatedAt time.Time `json:"createdAt"`
	// Boot is the boot ID of the machine when the pod's sandbox was created, at PlaceSince.
	Boot       string    `json:"boot,omitempty"`
	PlaceSince time.Time `json:"placeSince,omitzero"`
	// Group is the pod's own group, or 0.
	Group uint32  `json:"group,omitempty"`
	Pod   *v1.Pod `json:"pod"`
}

func (r *Runtime) podsDir() string     { return filepath.Join(r.options.Dir, "pods") }
func (r *Runtime) removingDir() string { return filepath.Join(r.options.Dir, "removing") }

func (r *Runtime) podDir(uid types.UID) podDir {
	return podDir(filepath.Join(r.podsDir(), string(uid)))
}

func (r *Runtime) makeDirs() error {
	if err := os.MkdirAll(r.options.Dir, traversable); err != nil {
		return err
	}
	return errors.Join(makeDir(r.podsDir(), traversable), makeDir(r.removingDir(), private))
}

// makeDir makes a directory with exactly these permissions, whatever the umask.
func makeDir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// A disk that takes no writes must not get in the way of what is right already.
	if info, err := os.Lstat(path); err == nil && info.Mode() == fs.ModeDir|mode {
		return nil
	}
	return os.Chmod(path, mode)
}

// load takes over what the directory holds. What an interrupted call has left half done
// is undone: only a pod with its record, and a container with its shim's record, have
// ever been started. Nothing that it finds is an error: what cannot be read or removed is
// reported, and the rest is taken over.
func (r *Runtime) load() {
	entries, err := os.ReadDir(r.podsDir())
	if err != nil {
		r.report("cannot list pods", r.podsDir(), err)
	}
	for _, entry := range entries {
		uid := types.UID(entry.Name())
		if err := r.loadPod(uid, entry); err != nil {
			r.mu.Lock()
			r.unreadable[uid] = err
			r.mu.Unlock()
			r.report("skipping a pod that cannot be taken over", string(r.podDir(uid)), err)
		}
	}
}

// loadPod returns an error for what it leaves alone.
func (r *Runtime) loadPod(uid types.UID, entry fs.DirEntry) error {
	if !entry.IsDir() {
		return errors.New("it is not the directory of a pod; remove it")
	}
	dir := r.podDir(uid)
	var rec podRecord
	err := record.Read(dir.record(), &rec)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.discard(dir) // interrupted while it was made or removed
	case errors.Is(err, record.ErrDamaged):
		r.options.Logger.Error("pod record is damaged, removing the pod", "uid", uid, "err", err)
		return r.discard(dir)
	case err != nil:
		return err
	}
	r.removeTemps(string(dir))
	p := &pod{dir: dir, manifest: rec.Pod, createdAt: rec.CreatedAt, placeSince: rec.PlaceSince, boot: rec.Boot, group: rec.Group}
	if p.boot != r.boot {
		p.placeSince = time.Now()
	}
	entries, err := os.ReadDir(dir.containers())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		c, err := r.loadContainer(uid, dir.container(entry.Name()))
		if err != nil {
			r.report("skipping a container that cannot be taken over", filepath.Join(dir.containers(), entry.Name()), err)
		}
		if c != nil {
			p.containers = append(p.containers, c)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.podGroups.keep(p.group)
	r.pods[uid] = p
	return nil
}

// removeTemps removes what an interrupted write left, if that is possible.
func (r *Runtime) removeTemps(dir string) {
	if err := record.RemoveTemps(dir); err != nil {
		r.options.Logger.Warn("removing temporary files failed", "dir", dir, "err", err)
	}
}

// Complete reports whether all required fields are set.
func (p *podRecord) Complete() bool { return p.Pod != nil }

// discard gives a pod up that has no record that can be read: what still runs of it is
// killed, since its owner cannot be told any more, and its files are removed in the
// background.
func (r *Runtime) discard(dir podDir) error {
	entries, err := os.ReadDir(dir.containers())
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	for _, entry := range entries {
		if err := killShimAndMembers(dir.container(entry.Name()), Scheme+entry.Name()); err != nil {
			return err
		}
	}
	r.removePodGroups(types.UID(filepath.Base(string(dir))))
	return r.discardDir(string(dir))
}

// discardDir lets the cleaner delete a directory.
func (r *Runtime) discardDir(dir string) error {
	aside, err := r.giveUp(dir)
	if err == nil && aside != "" {
		r.deleteLater(aside)
	}
	return err
}

func killShimAndMembers(dir containerDir, id string) error {
	members := proc.Members{Variable: shim.MarkerVariable + "=" + id}
	// Without the record the shim's children still have the variable, and the shim ends
	// with the last of them.
	_ = record.Read(dir.Shim(), &members.Leader)
	return members.Kill(sweepTimeout)
}

// loadContainer returns nil for a container that was never started or that was given up.
// An error is about what it leaves alone.
func (r *Runtime) loadContainer(uid types.UID, dir containerDir) (*container, error) {
	var spec record.Spec
	var shimID proc.ID
	err := record.Read(dir.Spec(), &spec)
	if errors.Is(err, record.ErrNewerFormat) {
		return nil, err
	}
	if err != nil {
		r.options.Logger.Warn("container has no readable record, removing it", "uid", uid, "dir", string(dir.Dir), "err", err)
		id := Scheme + filepath.Base(string(dir.Dir))
		if err := killShimAndMembers(dir, id); err != nil {
			return nil, err
		}
		return nil, r.discardDir(string(dir.Dir))
	}
	err = record.Read(dir.Shim(), &shimID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.discardDir(string(dir.Dir)) // the shim, if any, waits for a go that never comes
	}
	if err != nil {
		r.options.Logger.Error("shim record is damaged, taking the shim for dead", "uid", uid, "id", spec.ID, "err", err)
	}
	c := newContainer(uid, dir, spec)
	boot := cmp.Or(spec.Boot, shimID.Boot) // earlier releases wrote no Spec.Boot
	c.view.EarlierPlace = boot != "" && boot != r.boot
	return r.adopt(c, shimID)
}

// adopt watches a running shim, and takes over from a shim that has ended.
func (r *Runtime) adopt(c *container, shimID proc.ID) (*container, error) {
	pidfd, err := shimID.Open()
	if err == nil {
		r.refresh(c)
		if err := r.exits.add(pidfd, c); err != nil {
			return c, err
		}
		r.connect(c)
		return c, nil
	}
	if !errors.Is(err, proc.ErrGone) {
		return c, err
	}
	if !c.dir.exists() {
		return nil, nil // its shim never got the go, and has just removed it
	}
	r.removeTemps(string(c.dir.Dir))
	r.refresh(c) // after the shim was seen gone: what it had to say is said
	if r.stateOf(c) != runtime.Exited {
		r.sweep(c)
	}
	r.removeCgroups(c)
	return c, nil
}
