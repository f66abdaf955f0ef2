package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podusage"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// pod is a started pod. Runtime.mu guards it.
type pod struct {
	dir        podDir
	manifest   *v1.Pod
	createdAt  time.Time
	boot       string    // the boot of the machine in which the place was made
	placeSince time.Time // see runtime.Pod
	group      uint32    // its own, which all of its containers have; 0 if it has none
	containers []*container
}

func (p *pod) asRecord() podRecord {
	return podRecord{CreatedAt: p.createdAt, Boot: p.boot, PlaceSince: p.placeSince, Group: p.group, Pod: p.manifest}
}

// container is one attempt of one container.
type container struct {
	uid  types.UID
	dir  containerDir
	spec record.Spec // never changes

	// exits.mu guards what follows.
	pidfd     int // of the shim, -1 if the shim has ended
	control   int // connection to the shim, or -1
	redialled int // how often the shim closed a connection

	stopping sync.Mutex  // held while a stop is passed on by other ways than the socket; guards the next two
	kill     *time.Timer // of a command that is signalled directly
	killAt   time.Time

	// Runtime.mu guards what follows.
	view    runtime.Container
	started *record.Started // nil until the shim has said so

	cpu      podusage.CPUCount
	sessions sync.Map // the shims of commands that run, by proc.ID

	ended chan struct{} // closed once the container has exited and all that it wrote is in its log
}

func newContainer(uid types.UID, dir containerDir, spec record.Spec) *container {
	return &container{uid: uid, dir: dir, spec: spec, pidfd: -1, control: -1, ended: make(chan struct{}), view: runtime.Container{
		ID: spec.ID, Name: spec.Name, Attempt: spec.Attempt, State: runtime.Created, CreatedAt: spec.CreatedAt, Image: Image,
	}}
}

// marker is in the environment of each process of the container.
func (c *container) marker() string { return shim.MarkerVariable + "=" + c.spec.ID }

// containerDir is the directory of a container.
type containerDir struct{ record.Dir }

func (d containerDir) exists() bool {
	_, err := os.Stat(d.Spec())
	return err == nil
}

// refresh brings what is in memory up to what the shim has written. A container only
// moves forward, so that it does not matter who refreshes when.
func (r *Runtime) refresh(c *container) {
	started, exit, err := c.readProgress()
	if err != nil {
		r.options.Logger.Error("reading a container's records failed", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
	r.apply(c, started, exit)
}

func (r *Runtime) apply(c *container, started *record.Started, exit *record.Exit) {
	r.mu.Lock()
	changed := c.advance(started, exit)
	r.mu.Unlock()
	if changed {
		r.Notify(c.uid)
	}
}

func (r *Runtime) stateOf(c *container) runtime.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.view.State
}

// readProgress reads what the shim has written so far. A damaged record counts as none.
func (c *container) readProgress() (*record.Started, *record.Exit, error) {
	var started record.Started
	var exit record.Exit
	startedErr := record.Read(c.dir.Started(), &started)
	exitErr := record.Read(c.dir.Exit(), &exit)
	startedAs, exitAs := &started, &exit
	if startedErr != nil {
		startedAs = nil
	}
	if exitErr != nil {
		exitAs = nil
	}
	return startedAs, exitAs, errors.Join(unlessMissing(startedErr), unlessMissing(exitErr))
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// advance needs Runtime.mu. advance reports whether anything changed.
func (c *container) advance(started *record.Started, exit *record.Exit) bool {
	before := c.view
	if started != nil && c.view.State == runtime.Created {
		c.started = started
		c.view.State, c.view.StartedAt = runtime.Running, started.At
	}
	if exit != nil && c.view.State != runtime.Exited {
		c.view.State = runtime.Exited
		c.view.StartedAt, c.view.FinishedAt = exit.StartedAt, exit.FinishedAt
		c.view.ExitCode, c.view.Signal = exit.ExitCode, exit.Signal
		c.view.Reason, c.view.Message = exit.Reason, exit.Message
		c.end()
	}
	return c.view != before
}

// end needs Runtime.mu.
func (c *container) end() {
	select {
	case <-c.ended:
	default:
		close(c.ended)
	}
}

// find needs mu.
func (r *Runtime) find(id string) (*container, error) {
	for _, p := range r.pods {
		for _, c := range p.containers {
			if c.spec.ID == id {
				return c, nil
			}
		}
	}
	return nil, fmt.Errorf("process: container %s: %w", id, runtime.ErrNotFound)
}

// forget drops a container from the list.
func (r *Runtime) forget(c *container) {
	r.mu.Lock()
	c.end()
	if p, known := r.pods[c.uid]; known {
		p.containers = slices.DeleteFunc(p.containers, func(other *container) bool { return other == c })
	}
	r.mu.Unlock()
	r.Notify(c.uid)
}

// snapshot needs mu.
func (p *pod) snapshot(nodeIPs []string) runtime.Pod {
	s := runtime.Pod{Manifest: p.manifest.DeepCopy(), IPs: slices.Clone(nodeIPs), CreatedAt: p.createdAt, PlaceSince: p.placeSince}
	for _, c := range p.containers {
		s.Containers = append(s.Containers, c.view)
	}
	slices.SortFunc(s.Containers, func(a, b runtime.Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt))
	})
	return s
}

// podDir is the directory of a pod.
type podDir string

func (d podDir) record() string            { return filepath.Join(string(d), "pod.json") }
func (d podDir) volumes() string           { return filepath.Join(string(d), "volumes") }
func (d podDir) volume(name string) string { return filepath.Join(d.volumes(), name) }
func (d podDir) etc(name string) string    { return filepath.Join(string(d), "etc", name) }
func (d podDir) containers() string        { return filepath.Join(string(d), "containers") }
func (d podDir) container(id string) containerDir {
	return containerDir{record.Dir(filepath.Join(d.containers(), strings.TrimPrefix(id, Scheme)))}
}
