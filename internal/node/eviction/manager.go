package eviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

const (
	// immediate is what a pod is given for a hard threshold.
	immediate = time.Second
	// cleanupTimeout is how long the end of an evicted pod is waited for before the machine
	// is looked at again.
	cleanupTimeout = 30 * time.Second
	// limitsPeriod is how often the sizes of volumes with a limit are measured, which reads
	// all of their files.
	limitsPeriod = time.Minute
)

// Reasons of events, and signalVolumeLimit, which stands for the limit of a volume among the signals,
// all as with the kubelet.
const (
	eventThresholdMet  = "EvictionThresholdMet"
	eventExceededGrace = "ExceededGracePeriod"
	signalVolumeLimit  = "emptydirfs.limit"
)

var errRunTwice = errors.New("eviction: Run may be called only once")

// Manager evicts pods under pressure. See the package comment for how it is used.
type Manager struct {
	opts      Options
	evictions *prometheus.CounterVec

	mu         sync.Mutex // guards what follows
	running    bool
	pressure   pressure
	conditions []v1.NodeConditionType

	measured time.Time // when volumes were last measured; Run's own
}

// New returns a manager that has seen nothing. New starts nothing: see [Manager.Run].
func New(options Options) (*Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("eviction: %w", err)
	}
	options.setDefaults()
	m := &Manager{opts: options, evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statusd_evictions_total", Help: "Pods that were evicted, by what ran short.",
	}, []string{"signal"})}
	if options.Registerer != nil {
		if err := options.Registerer.Register(m.evictions); err != nil {
			return nil, fmt.Errorf("eviction: %w", err)
		}
	}
	return m, nil
}

// Conditions are the conditions of the node that are true: MemoryPressure, DiskPressure,
// PIDPressure.
func (m *Manager) Conditions() []v1.NodeConditionType {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.conditions)
}

// Admit returns why a pod may not start under the present pressure, or "". Memory pressure rejects
// best-effort pods that do not tolerate it; any other pressure rejects all pods that are not
// critical.
func (m *Manager) Admit(pod *v1.Pod) (message string) {
	conditions := m.Conditions()
	if len(conditions) == 0 || podstatus.IsCritical(pod) {
		return ""
	}
	if slices.Equal(conditions, []v1.NodeConditionType{v1.NodeMemoryPressure}) &&
		(m.opts.QOSClass(pod) != v1.PodQOSBestEffort || toleratesMemoryPressure(pod)) {
		return ""
	}
	return fmt.Sprintf("The node had condition: %v. ", conditions)
}

func toleratesMemoryPressure(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool {
		sameEffect := t.Effect == "" || t.Effect == v1.TaintEffectNoSchedule
		switch {
		case !sameEffect:
			return false
		case t.Operator == v1.TolerationOpExists:
			return t.Key == "" || t.Key == v1.TaintNodeMemoryPressure
		}
		return t.Key == v1.TaintNodeMemoryPressure && t.Value == ""
	})
}

// Run reads the signals until ctx ends, and evicts pods one at a time.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	second := m.running
	m.running = true
	m.mu.Unlock()
	if second {
		return errRunTwice
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if ctx.Err() != nil { // both were there
			return nil
		}
		pause := m.opts.Interval
		if evicted := m.look(ctx); evicted != nil {
			m.await(ctx, evicted)
			pause = 0 // it may not have been enough
		}
		timer.Reset(pause)
	}
}

// leaving is a pod that was evicted and has not ended yet.
type leaving struct {
	pod   *v1.Pod
	by    time.Time // the end of its grace
	ended <-chan struct{}
}

// await waits for the end of a pod that was evicted, within bounds.
func (m *Manager) await(ctx context.Context, evicted *leaving) {
	timer := time.NewTimer(cleanupTimeout)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-evicted.ended:
	case now := <-timer.C:
		m.opts.Logger.Warn("an evicted pod has not ended yet", "pod", evicted.pod.Namespace+"/"+evicted.pod.Name, "uid", evicted.pod.UID)
		if now.After(evicted.by) {
			m.opts.Recorder.Event(evicted.pod, "", v1.EventTypeWarning, eventExceededGrace, "Container runtime did not kill the pod within specified grace period.")
		}
	}
}

// look reads the machine once and evicts the pods whose volumes are too large, else at most one pod. look returns the last of them.
func (m *Manager) look(ctx context.Context) *leaving {
	seen, err := m.opts.Read()
	if err != nil {
		m.opts.Logger.Error("cannot read the machine, the pressure stays as it was", "err", err)
		return nil
	}
	due := m.observe(seen, time.Now())
	pods := m.opts.Pods()
	if evicted := m.enforceLimits(ctx, pods); evicted != nil {
		return evicted
	}
	if len(due) == 0 {
		return nil
	}
	t := due[0]
	m.opts.Logger.Warn("node under resource pressure", "signal", t.Signal, "available", seen[t.Signal].Available,
		"threshold", t.Below.Of(seen[t.Signal].Capacity), "soft", !t.hard())
	m.opts.NodeEvent(v1.EventTypeWarning, eventThresholdMet, fmt.Sprintf("Attempting to reclaim %s", t.Signal.resource()))
	if t.Signal.condition() == v1.NodeDiskPressure && m.reclaim(ctx) {
		return nil
	}
	return m.evictFirst(ctx, pods, t, seen)
}

// observe takes a reading in and returns the thresholds that are due.
func (m *Manager) observe(seen Observations, now time.Time) (due []Threshold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pressure, due = m.pressure.next(m.opts.Thresholds, seen, now)
	conditions := m.pressure.conditions(m.opts.Transition, now)
	if !slices.Equal(conditions, m.conditions) {
		m.opts.Logger.Info("pressure changed", "before", m.conditions, "now", conditions)
	}
	m.conditions = conditions
	return due
}

// reclaim deletes the remains of dead pods and reports whether that was enough.
func (m *Manager) reclaim(ctx context.Context) bool {
	if err := m.opts.Reclaim(ctx); err != nil {
		m.opts.Logger.Error("not all that is left of dead pods could be deleted", "err", err)
	}
	seen, err := m.opts.Read()
	if err != nil || len(crossed(m.opts.Thresholds, seen, true)) > 0 {
		return false
	}
	m.opts.Logger.Info("dead pods freed enough resources, no pod is evicted")
	return true
}

// enforceLimits evicts each pod that uses more of the disk than it may, as the kubelet does, and returns the last of them.
func (m *Manager) enforceLimits(ctx context.Context, pods []*v1.Pod) (last *leaving) {
	now := time.Now()
	if !m.measured.IsZero() && now.Sub(m.measured) < limitsPeriod {
		return nil
	}
	m.measured = now
	for _, pod := range pods {
		if !hasLimit(pod) || podstatus.IsCritical(pod) {
			continue
		}
		usage, err := m.opts.Usage(ctx, pod)
		if err != nil {
			continue
		}
		if message := overLimit(pod, &usage); message != "" {
			if evicted := m.evict(pod, signalVolumeLimit, message, immediate); evicted != nil {
				last = evicted
			}
		}
	}
	return last
}

// evictFirst evicts the first pod in the order that may be evicted, if any.
func (m *Manager) evictFirst(ctx context.Context, pods []*v1.Pod, t Threshold, seen Observations) *leaving {
	ranked := m.measure(ctx, pods)
	rank(ranked, t.Signal)
	for i := range ranked {
		s := &ranked[i]
		if podstatus.IsCritical(s.pod) {
			continue
		}
		if evicted := m.evict(s.pod, string(t.Signal), describe(s, t, seen), m.grace(s.pod, &t)); evicted != nil {
			return evicted
		}
	}
	m.opts.Logger.Error("node under resource pressure, and no pod can be evicted", "signal", t.Signal, "pods", len(pods))
	return nil
}

func (m *Manager) grace(pod *v1.Pod, t *Threshold) time.Duration {
	if t.hard() {
		return immediate
	}
	grace := v1.DefaultTerminationGracePeriodSeconds * time.Second
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = time.Duration(*own) * time.Second
	}
	if most := m.opts.MaxPodGrace; most > 0 {
		grace = min(grace, most)
	}
	return grace
}

func (m *Manager) measure(ctx context.Context, pods []*v1.Pod) []subject {
	all := make([]subject, 0, len(pods))
	for _, pod := range pods {
		s := subject{pod: pod, requests: m.opts.Requests(pod)}
		usage, err := m.opts.Usage(ctx, pod)
		switch {
		case err == nil:
			s.usage = &usage
		case !errors.Is(err, runtime.ErrNotFound):
			m.opts.Logger.Error("cannot measure a pod", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
		}
		all = append(all, s)
	}
	return all
}

// evict ends a pod; signal is what for, in the metric. evict returns nil for a pod that ends already.
func (m *Manager) evict(pod *v1.Pod, signal, message string, grace time.Duration) *leaving {
	ended := m.opts.Evict(pod, message, grace)
	if ended == nil {
		return nil
	}
	m.opts.Logger.Warn("pod evicted", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "message", message, "grace", grace)
	m.opts.Recorder.Event(pod, "", v1.EventTypeWarning, Reason, message)
	m.evictions.WithLabelValues(signal).Inc()
	return &leaving{pod: pod, by: time.Now().Add(grace), ended: ended}
}
