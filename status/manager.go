package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/podrules"
)

// Errors that callers can distinguish with errors.Is.
var (
	// ErrNoUID: the pod passed in has no UID, and is not found by name.
	ErrNoUID = errors.New("metadata.uid is empty")
	// ErrUnknownPod: the table of pods does not have the pod, or has a later pod of the same name.
	ErrUnknownPod = errors.New("the pod is not known on this node")
	// ErrNoStatus: no status of the pod has been reported yet.
	ErrNoStatus = errors.New("the pod has no status yet")
	// ErrUnknownContainer: the pod's status lists no container of this ID, for example because the
	// container was restarted.
	ErrUnknownContainer = errors.New("the pod has no container of this ID")
	// ErrNotRunning: Run was not called, or has ended, so nothing is sent.
	ErrNotRunning = errors.New("the manager is not running: Run was not called, or has ended")
	// ErrShutdown: Run was called after Shutdown.
	ErrShutdown = errors.New("status: the manager was shut down; make a new one with status.New")
)

var errRunTwice = errors.New("status: Run was called while another Run of the same manager goes on")

// Manager publishes the status of a node's pods to the API server. See the package comment. All
// methods may be called from any goroutine.
type Manager struct {
	opts    settings
	table   *pods.Table // the manager's own; nil: Options.Pods was set
	cache   *cache
	resizes *Resizes
	writes  writes
	ends    terminations
	engine  *engine
	metrics *metrics
	owns    podrules.Ownership
	foreign foreignTypes
	gone    goneMemory
	life    life
	// listDue: the watch is behind many pods, and some are overdue to be read, see listOverdue.
	listDue chan struct{} // capacity 1
}

// settings are the options with a journal that has every method.
type settings struct {
	Options
	Journal Journal
}

// New returns a manager. New starts nothing, and nothing is sent before [Manager.Run]. The cache
// contains the statuses of an earlier process from the journal when New returns.
func New(options Options) (*Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("status: options: %w", err)
	}
	options.setDefaults()
	m := &Manager{
		opts:  settings{Options: options, Journal: wholeJournal(options.Journal)},
		cache: newCache(options.Client == nil, newFeed(), options.Observer, options.Jitter),
		owns:  podrules.Owning(options.OwnedConditions...),
		life:  life{begun: make(chan struct{})},

		listDue: make(chan struct{}, 1),
	}
	if options.Pods == nil {
		m.table = pods.New()
		m.opts.Pods = m.table
	}
	m.resizes = newResizes(m)
	m.cache.owns, m.cache.judges = m.owns, options.Safety == nil
	m.metrics = newMetrics()
	if err := m.metrics.register(options.Registerer, m.cache, m.resizes.gauges()); err != nil {
		return nil, fmt.Errorf("status: register metrics: %w", err)
	}
	m.engine = newEngine(engineConfig{
		workers: options.Workers,
		wide:    options.PreferThroughput,
		slow:    options.SlowRequest,
		resync:  options.ResyncPeriod,
		qps:     options.QPS,
		burst:   options.Burst,
		turn:    m.syncPod,
		nextTry: m.cache.setNextTry,
		pass:    m.fullPass,
		metrics: m.metrics,
		shareOf: m.shareOf(),
	})
	m.restoreFinals()
	return m, nil
}

// initialList lists the node's pods, and retries until that succeeds or the context ends.
func (m *Manager) initialList(ctx context.Context) bool {
	for attempt := 1; ; attempt++ {
		listed, err := m.list(ctx)
		if err == nil {
			for i := range listed {
				m.observe(&listed[i])
			}
			m.forgetUnlisted(listed)
			m.compareFinals(listed)
			return true
		}
		// All pods wait for this one request, so that it is no more than the probe of an outage or of a pause.
		wait := min(max(retryBackoff.Wait(attempt, m.cache.jitter()), pauseAsked(err)), probeEvery)
		m.cache.setStall(stall{reason: stallUnlisted, err: err, attempts: attempt, nextTry: time.Now().Add(wait)})
		m.opts.Logger.Warn("initial pod list failed, will retry; no status is sent before it succeeds", "attempt", attempt, "wait", wait, "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// forgetUnlisted removes from the journal what it has of pods that were deleted while no process of the node
// ran: no event will. With a table of the caller's, RemoveOrphanedStatuses does that.
func (m *Manager) forgetUnlisted(listed []v1.Pod) {
	if m.table == nil || m.opts.Journal == nil {
		return
	}
	there := make(map[types.UID]bool, len(listed))
	for i := range listed {
		there[listed[i].UID] = true
	}
	m.retainInJournal(func(uid types.UID) bool { return there[uid] || m.knows(uid) })
}

// forget drops everything about a pod, first in memory, then in the journal. It returns the journal
// write, or nil, and reports whether the pod may be queued.
func (m *Manager) forget(uid types.UID) (x *write, queued bool) {
	queued, x = m.drop(uid)
	m.ends.forget(uid)
	m.resizes.remove(uid)
	return x, queued
}

// drop is one step for the journal, so that a report either comes before it, or its end is written after it.
func (m *Manager) drop(uid types.UID) (queued bool, x *write) {
	m.writes.mu.Lock()
	defer m.writes.mu.Unlock()
	was, queued := m.cache.remove(uid)
	if m.opts.Journal == nil {
		return queued, nil
	}
	x = m.writes.addLocked(uid, writeRemove, func() error { return m.removeFromJournal(uid) })
	if was != nil {
		m.writes.nameLocked(uid, was.namespace, was.name)
	}
	return queued, x
}

func (m *Manager) removeFromJournal(uid types.UID) error {
	return m.journaled("remove pod", uid, m.opts.Journal.RemovePod(uid))
}
