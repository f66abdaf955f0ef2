package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/manifest"
)

const (
	// settle is how long the directory must be quiet after a change before it is read:
	// editors and copies write a file in several steps.
	settle = 100 * time.Millisecond
	// settleAtMost bounds the wait for quiet.
	settleAtMost = time.Second
)

// ManifestsOptions configure a [Manifests] source. Directory, NodeName and Handle are required.
type ManifestsOptions struct {
	// Directory holds the manifests, and need not exist yet.
	Directory string
	NodeName  string
	// Handle receives the changes, one at a time.
	Handle func(Change)
	// Rescan is how often the directory is read without a notification, for file systems
	// that send none. Default 20 s.
	Rescan time.Duration
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Manifests is the source of static pods: the files *.yaml, *.yml, *.json and *.manifest
// of one directory. Links are followed, subdirectories are not read. Changes are noticed by
// notification, and by the next rescan at the latest.
type Manifests struct {
	log       *slog.Logger
	rescan    time.Duration
	directory directory
	known     *known
	notify    func(directory string) (notifier, error)

	mu       sync.Mutex // guards problems
	problems []manifest.Problem
}

// notifier signals that a directory may have changed.
type notifier interface {
	// rearm watches whatever can be watched now. It is called before each reading.
	rearm()
	changes() <-chan struct{}
	close()
}

// Validate reports everything that is wrong with the options.
func (o *ManifestsOptions) Validate() error {
	var problems []error
	if o.Directory == "" {
		problems = append(problems, errors.New("no Directory"))
	}
	if o.NodeName == "" {
		problems = append(problems, errors.New("no NodeName"))
	}
	if o.Handle == nil {
		problems = append(problems, errors.New("no Handle"))
	}
	if o.Rescan < 0 {
		problems = append(problems, fmt.Errorf("negative Rescan: %v", o.Rescan))
	}
	return errors.Join(problems...)
}

// NewManifests makes a source of static pods. NewManifests reads nothing: see [Manifests.Run].
func NewManifests(o ManifestsOptions) (*Manifests, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("source: manifests: %w", err)
	}
	o.Rescan = cmp.Or(o.Rescan, 20*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(o.Directory) // part of the pods' identity: it must not depend on where statusd was started
	if err != nil {
		return nil, fmt.Errorf("source: manifests: %w", err)
	}
	return &Manifests{
		log:       o.Logger.With("node", o.NodeName),
		rescan:    o.Rescan,
		directory: directory{path: path, node: o.NodeName, files: map[string]*manifestFile{}},
		known:     &known{origin: FromFile, handle: o.Handle},
		notify:    newNotifier,
	}, nil
}

// Run follows the directory until ctx ends, then returns nil. Run may be called once.
func (m *Manifests) Run(ctx context.Context) error {
	var changes <-chan struct{} // nil without notification: only rescans then
	rearm := func() {}
	if n, err := m.notify(m.directory.path); err != nil {
		m.log.Warn("no notification of changed manifests, rescanning only", "err", err, "rescan", m.rescan)
	} else {
		defer n.close()
		changes, rearm = n.changes(), n.rearm
	}
	rescan := time.NewTicker(m.rescan)
	defer rescan.Stop()
	for {
		rearm()
		m.read()
		select {
		case <-ctx.Done():
			return nil
		case <-rescan.C:
		case <-changes:
			untilQuiet(ctx, changes)
		}
	}
}

// untilQuiet waits for the end of a burst of changes.
func untilQuiet(ctx context.Context, changes <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, settleAtMost)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-time.After(settle):
			return
		}
	}
}

func (m *Manifests) read() {
	before := m.directory.missing
	pods, problems, err := m.directory.read(time.Now())
	if m.directory.missing && !before {
		m.log.Info("manifest directory does not exist yet", "directory", m.directory.path)
	}
	if err != nil {
		// The pods are unknown, so there is no change: running pods keep running.
		m.setProblems([]manifest.Problem{{File: m.directory.path, Reason: reasonOf(errors.Unwrap(err)).Error()}})
		return
	}
	m.setProblems(problems)
	m.known.replace(pods, func(old, new *v1.Pod) bool { return true }) // the same UID is the same content
}

// setProblems stores the problems, and logs the new ones.
func (m *Manifests) setProblems(problems []manifest.Problem) {
	m.mu.Lock()
	before := m.problems
	m.problems = problems
	m.mu.Unlock()
	for _, p := range problems {
		if !slices.Contains(before, p) {
			m.log.Error("invalid manifest", "err", p)
		}
	}
	if len(problems) == 0 && len(before) > 0 {
		m.log.Info("all manifests are valid again")
	}
}

// Problems returns the current problems of the manifests, in the order of file and line.
func (m *Manifests) Problems() []manifest.Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.problems)
}

// HasSynced reports whether the directory was read once and its pods were handled.
func (m *Manifests) HasSynced() bool { return m.known.synced.Load() }
