package status

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podstatus"
)

// Errors that a caller may want to tell apart.
var (
	// ErrUnknownPod: the table of pods does not have the pod.
	ErrUnknownPod = errors.New("the pod is not known on this node")
	// ErrNoStatus: no status of the pod has been reported yet.
	ErrNoStatus = errors.New("the pod has no status yet")
	// ErrUnknownContainer: the pod's status lists no container of this ID, for example
	// because the container has been replaced by another one.
	ErrUnknownContainer = errors.New("the pod has no container of this ID")
	// ErrNoJournal: the manager was made without a journal.
	ErrNoJournal = errors.New("status: there is no journal to store this in; set Options.Journal")
)

var errRunTwice = errors.New("status: Run was called before; a manager runs once, status.New makes another one")

// Manager publishes the status of a node's pods to the API server. See the package comment for
// how it is used. All methods may be called from any goroutine.
type Manager struct {
	opts    Options
	table   *pods.Table // the manager's own; nil: Options.Pods was set
	cache   *cache
	resizes *Resizes
	finals  finals
	ends    terminations
	engine  *engine
	metrics *metrics
	owns    podstatus.Ownership
	foreign foreignTypes
	started atomic.Bool
}

// New returns a manager. It starts nothing, and sends nothing before [Manager.Run]. What
// the journal holds of an earlier process is in the cache when New returns.
func New(options Options) (*Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("status: options: %w", err)
	}
	options.setDefaults()
	m := &Manager{
		opts:  options,
		cache: newCache(options.Client == nil, newFeed(), options.Observer, options.Jitter),
		owns:  podstatus.Owning(options.OwnedConditions...),
	}
	if options.Pods == nil {
		m.table = pods.New()
		m.opts.Pods = m.table
	}
	m.resizes = newResizes(m)
	m.cache.owns = m.owns
	m.metrics = newMetrics()
	if err := m.metrics.register(options.Registerer, m.cache, m.resizes.gauges()); err != nil {
		return nil, fmt.Errorf("status: register metrics: %w", err)
	}
	m.engine = newEngine(engineConfig{
		workers: options.Workers,
		slow:    options.SlowRequest,
		resync:  options.ResyncPeriod,
		qps:     options.QPS,
		burst:   options.Burst,
		turn:    m.syncPod,
		pass:    m.fullPass,
		metrics: m.metrics,
	})
	m.restoreFinals()
	return m, nil
}

// Run delivers statuses until the context ends, and returns once everything that it
// started has stopped. What is not delivered by then stays in the cache, see
// [Manager.Flush]. Nothing is sent before the node's pods were listed.
func (m *Manager) Run(ctx context.Context) error {
	if !m.started.CompareAndSwap(false, true) {
		return errRunTwice
	}
	defer func() {
		for _, leave := range m.metrics.leave {
			leave()
		}
	}()
	if m.opts.Client == nil {
		<-ctx.Done()
		return nil
	}
	if !m.initialList(ctx) {
		return nil
	}
	var background sync.WaitGroup
	if server, ok := m.opts.Client.(VersionReader); ok {
		background.Go(func() { m.followHistory(ctx, server) })
	}
	m.engine.run(ctx)
	background.Wait()
	return nil
}

// initialList lists the node's pods, and retries until that succeeds or the context ends.
func (m *Manager) initialList(ctx context.Context) bool {
	for attempt := 1; ; attempt++ {
		listed, err := func() ([]v1.Pod, error) {
			ctx, cancel := context.WithTimeout(ctx, m.opts.RequestTimeout)
			defer cancel()
			return m.opts.Client.List(ctx)
		}()
		m.metrics.requests.WithLabelValues("list", reasonOf(err)).Inc()
		if err == nil {
			for i := range listed {
				m.observe(&listed[i])
			}
			return true
		}
		// All pods wait for this one request, so that it is no more than the probe of an outage.
		wait := max(min(retryBackoff.Wait(attempt, m.cache.jitter()), probeEvery), pauseAsked(err))
		m.opts.Logger.Warn("initial pod list failed, will retry; no status is sent before it succeeds", "attempt", attempt, "wait", wait, "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// forget drops everything about a pod. It reports whether the pod may be queued.
func (m *Manager) forget(uid types.UID) (queued bool) {
	// Under the lock of its final status, so that no report puts that back in between.
	lock := m.finals.lock(uid)
	lock.Lock()
	defer lock.Unlock()
	queued = m.cache.remove(uid)
	m.finals.unsaved.Delete(uid)
	m.ends.forget(uid)
	m.resizes.remove(uid)
	if m.opts.Journal != nil {
		m.journaled("remove pod", uid, m.opts.Journal.RemovePod(uid))
	}
	return queued
}
