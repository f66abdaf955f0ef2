package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/statusd/statusd/internal/backoff"
)

// Fleet bounds how many kubelets of a cluster are restarted at once.
type Fleet interface {
	// Acquire takes a slot for a restart of this node. [ErrFleetBusy] means that other nodes have all slots; any other error means that
	// the slots are unknown.
	Acquire(ctx context.Context, reason string) error
	// Release returns the slot; a slot that is not released expires.
	Release(ctx context.Context) error
}

// ErrFleetBusy is why a restart waits for those of other nodes; the text names them.
var ErrFleetBusy = errors.New("other nodes are restarting their kubelets")

const (
	// spread is the longest random delay before a restart for what many nodes may see at the same time.
	spread = 30 * time.Second
	// fleetTimeout is how long a request for a slot may take, fleetPause when the next one follows.
	fleetTimeout = 10 * time.Second
	fleetPause   = 20 * time.Second
	// provenHealth is how long a kubelet must be healthy after a restart before its slot is given back: a broken version that ends
	// again after some seconds would otherwise hand the slot from node to node.
	provenHealth = 30 * time.Second
	// unknownTimes is how often in a row the slots must be unknown before a restart for a reason of this machine is made without one: an API server that
	// is slow answers the next request. While other nodes were seen to restart their kubelets within busyMemory, no such restart is made.
	unknownTimes = 2
	busyMemory   = 10 * time.Minute
)

// ofThisMachine reports whether a reason is known from this machine alone. Then a restart does not need the API server.
func ofThisMachine(reason string) bool {
	switch reason {
	case ProcessGone, ProcessStopped, HealthzFailing, HealthzSilent, SyncLoopStuck, PLEGStale, RuntimeDown, RuntimeHangs:
		return true
	}
	return false
}

// admitted takes a slot of the cluster for a restart, or returns why the restart must wait.
func (g *Guard) admitted(ctx context.Context, reason string) error {
	if g.o.Fleet == nil {
		return nil
	}
	if !ofThisMachine(reason) && !backoff.Sleep(ctx, rand.N(spread)) {
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	err := g.o.Fleet.Acquire(limited, reason)
	alone := g.noteSlots(err)
	switch {
	case err == nil:
		g.mu.Lock()
		g.slot = true
		g.mu.Unlock()
	case alone && ofThisMachine(reason):
		g.log.Warn("restarts of other nodes cannot be counted; restarting, because the reason is on this machine", "reason", reason, "err", err)
		return nil
	case !errors.Is(err, ErrFleetBusy):
		err = fmt.Errorf("how many other nodes restart their kubelets is not known: %w", err)
	}
	return err
}

// noteSlots notes an answer about the slots. noteSlots reports whether they are unknown for so long that a restart may be made without one.
func (g *Guard) noteSlots(err error) (alone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil:
		g.unknown = 0
	case errors.Is(err, ErrFleetBusy):
		g.unknown, g.busyAt = 0, time.Now()
	default:
		g.unknown++
	}
	return g.unknown >= unknownTimes && (g.busyAt.IsZero() || time.Since(g.busyAt) > busyMemory)
}

func (g *Guard) hasSlot() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slot
}

// releaseSlot gives the slot back once the kubelet is healthy.
func (g *Guard) releaseSlot(ctx context.Context) {
	g.mu.Lock()
	had := g.slot
	g.slot = false
	g.mu.Unlock()
	if !had {
		return
	}
	limited, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	if err := g.o.Fleet.Release(limited); err != nil {
		g.log.Info("slot of the restart not released, it expires", "err", err)
	}
}
