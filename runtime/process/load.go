package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/proc"
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
	// Boot is the boot of the machine in which the pod's place was made, and
	// PlaceSince when that was.
	Boot       string    `json:"boot,omitempty"`
	PlaceSince time.Time `json:"placeSince,omitzero"`
	Pod        *v1.Pod   `json:"pod"`
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
	return os.Chmod(path, mode)
}

// load takes over what the directory holds. What an interrupted call has left half done
// is undone first: only a pod with its record, and a container with its shim's record,
// have ever been started.
func (r *Runtime) load() error {
	if err := emptyDir(r.removingDir()); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.podsDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := r.loadPod(types.UID(entry.Name())); err != nil {
			return fmt.Errorf("pod %s: %w", entry.Name(), err)
		}
	}
	return nil
}

func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

func (r *Runtime) loadPod(uid types.UID) error {
	dir := r.podDir(uid)
	var rec podRecord
	err := record.Read(dir.record(), &rec)
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(string(dir))
	}
	if err != nil || rec.Pod == nil {
		return r.discard(dir, err)
	}
	if err := record.RemoveTemps(string(dir)); err != nil {
		return err
	}
	p := &pod{dir: dir, manifest: rec.Pod, createdAt: rec.CreatedAt, placeSince: rec.PlaceSince, boot: rec.Boot}
	if p.boot != r.boot {
		p.placeSince = time.Now()
	}
	entries, err := os.ReadDir(dir.containers())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		c, err := r.loadContainer(uid, dir.container(entry.Name()))
		if err != nil {
			return fmt.Errorf("container %s: %w", entry.Name(), err)
		}
		if c != nil {
			p.containers = append(p.containers, c)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[uid] = p
	return nil
}

// discard gives a pod up whose record cannot be read: what still runs of it is killed,
// since nobody could tell any more what it is, and its files are removed.
func (r *Runtime) discard(dir podDir, cause error) error {
	r.options.Logger.Error("pod record is damaged, removing the pod", "dir", string(dir), "err", cause)
	entries, err := os.ReadDir(dir.containers())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if err := killShimAndMembers(dir.container(entry.Name()), Scheme+entry.Name()); err != nil {
			return err
		}
	}
	return os.RemoveAll(string(dir))
}

func killShimAndMembers(dir containerDir, id string) error {
	members := proc.Members{Variable: shim.MarkerVariable + "=" + id}
	if err := record.Read(dir.Shim(), &members.Leader); unlessMissing(err) != nil {
		return err
	}
	return members.Kill(sweepTimeout)
}

// loadContainer returns nil for a container that was never started.
func (r *Runtime) loadContainer(uid types.UID, dir containerDir) (*container, error) {
	var spec record.Spec
	var shimID proc.ID
	if err := record.Read(dir.Spec(), &spec); err != nil {
		r.options.Logger.Warn("container has no readable record, removing it", "uid", uid, "dir", string(dir.Dir), "err", err)
		id := Scheme + filepath.Base(string(dir.Dir))
		return nil, errors.Join(killShimAndMembers(dir, id), os.RemoveAll(string(dir.Dir)))
	}
	err := record.Read(dir.Shim(), &shimID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, os.RemoveAll(string(dir.Dir)) // the shim, if any, waits in vain for its go
	}
	if err != nil {
		r.options.Logger.Error("shim record is damaged, taking the shim for dead", "uid", uid, "id", spec.ID, "err", err)
	}
	c := newContainer(uid, dir, spec)
	boot := cmp.Or(spec.Boot, shimID.Boot) // earlier releases wrote no Spec.Boot
	c.view.EarlierPlace = boot != "" && boot != r.boot
	return r.adopt(c, shimID)
}

// adopt watches a shim that still runs, and takes over from one that does not.
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
		return nil, err
	}
	if !c.dir.exists() {
		return nil, nil // its shim never got the go, and has just removed it
	}
	if err := record.RemoveTemps(string(c.dir.Dir)); err != nil {
		return nil, err
	}
	r.refresh(c) // after the shim was seen gone: what it had to say is said
	if r.stateOf(c) != runtime.Exited {
		r.sweep(c)
	}
	return c, nil
}
