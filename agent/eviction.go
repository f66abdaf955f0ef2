package agent

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

func (e *EvictionConfig) config() eviction.Config {
	return eviction.Config{Hard: e.Hard, Soft: e.Soft, SoftGracePeriod: e.SoftGracePeriod, MinimumReclaim: e.MinimumReclaim}
}

func (e *EvictionConfig) validate(wrong func(path, format string, args ...any)) {
	if _, err := e.config().Thresholds(); err != nil {
		for _, problem := range split(err) {
			wrong("eviction", "%v", problem)
		}
	}
	if e.MaxPodGracePeriod < 0 {
		wrong("eviction.maxPodGracePeriod", "%v: want 0 or more", e.MaxPodGracePeriod)
	}
	if e.PressureTransitionPeriod < 0 {
		wrong("eviction.pressureTransitionPeriod", "%v: want 0 or more", e.PressureTransitionPeriod)
	}
}

// split takes joined errors apart.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// wireEviction creates the eviction manager.
func (a *Agent) wireEviction() error {
	thresholds, err := a.config.Eviction.config().Thresholds()
	if err != nil {
		return err
	}
	var usage func(context.Context, *v1.Pod) (runtime.Usage, error)
	if meter, ok := a.runtime.(runtime.Meter); ok {
		usage = func(ctx context.Context, pod *v1.Pod) (runtime.Usage, error) { return meter.PodUsage(ctx, pod.UID) }
	}
	a.evictions, err = eviction.New(eviction.Options{
		Thresholds:  thresholds,
		MaxPodGrace: a.config.Eviction.MaxPodGracePeriod,
		Transition:  a.config.Eviction.PressureTransitionPeriod,
		Interval:    a.machine.interval,
		Read:        a.observe,
		Pods:        a.activePods,
		Requests:    fit.Requests,
		QOSClass:    podstatus.QOSClass,
		Usage:       usage,
		Reclaim:     a.reclaim,
		Evict:       a.evict,
		Recorder:    a.events,
		NodeEvent:   a.events.NodeEvent,
		Registerer:  a.metrics,
		Logger:      a.log,
	})
	return err
}

// reclaim deletes the files that no pod needs any more.
func (a *Agent) reclaim(ctx context.Context) error {
	err := a.workers.Reclaim(ctx)
	if store, ok := a.runtime.(runtime.ImageStore); ok {
		err = errors.Join(err, store.RemoveUnusedImages(ctx))
	}
	return err
}

// observe reads the values of the eviction signals.
func (a *Agent) observe() (eviction.Observations, error) {
	r, err := a.machine.look()
	if err != nil {
		return nil, err
	}
	return eviction.Observations{
		eviction.MemoryAvailable:  {Available: r.MemoryAvailable, Capacity: r.MemoryTotal},
		eviction.NodeFSAvailable:  {Available: r.DiskAvailable, Capacity: r.DiskTotal},
		eviction.NodeFSInodesFree: {Available: r.InodesFree, Capacity: r.Inodes},
		eviction.PIDAvailable:     {Available: r.PIDs - min(r.PIDs, r.PIDsUsed), Capacity: r.PIDs},
	}, nil
}

// evict ends a pod because of node pressure. evict returns nil for a pod that is ending already.
func (a *Agent) evict(pod *v1.Pod, message string, grace time.Duration) <-chan struct{} {
	if !a.workers.Evict(pod.UID, worker.Eviction{
		Grace: grace, Reason: eviction.Reason, Message: message,
		Condition: &v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: reasonTerminated, Message: message,
		},
	}) {
		return nil
	}
	return a.workers.Stopped(pod.UID)
}

// thresholds returns the hard eviction thresholds.
func (a *Agent) thresholds() node.Thresholds {
	kept := node.Thresholds{PIDsAvailable: node.DefaultThresholds().PIDsAvailable, Clear: a.config.Eviction.PressureTransitionPeriod}
	reading := a.machine.latest()
	hard, err := eviction.Config{Hard: a.config.Eviction.Hard}.Thresholds()
	if err != nil {
		return node.DefaultThresholds() // a config that is not valid gets no further
	}
	for _, t := range hard {
		switch t.Signal {
		case eviction.MemoryAvailable:
			kept.MemoryAvailable = t.Below.Of(reading.MemoryTotal)
		case eviction.NodeFSAvailable:
			kept.DiskAvailable = shareOf(t.Below, reading.DiskTotal)
		case eviction.NodeFSInodesFree:
			kept.InodesFree = shareOf(t.Below, reading.Inodes)
		case eviction.PIDAvailable:
			kept.PIDsAvailable = shareOf(t.Below, reading.PIDs)
		}
	}
	return kept
}

// shareOf is an amount as a share of a capacity, below 1.
func shareOf(a eviction.Amount, capacity uint64) float64 {
	if a.Number == 0 || capacity == 0 {
		return a.Share
	}
	return min(float64(a.Number)/float64(capacity), 0.99)
}
