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
	// Acquire takes a slot for a restart of this node. An error that is [ErrFleetBusy] says that other nodes have all slots; any other one
	// says that the slots are not known.
	Acquire(ctx context.Context, reason string) error
	// Release gives the slot back; a slot that is not given back expires.
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
)

// ofThisMachine reports whether a reason is known from this machine alone. Then a restart does not need the API server.
func ofThisMachine(reason string) bool {
	switch reason {
	case ProcessGone, ProcessStopped, HealthzFailing, HealthzSilent, SyncLoopStuck, PLEGStale, RuntimeDown, RuntimeHangs:
		return true
	}
	return false
}

// admitted reports whether the cluster's bound lets a restart begin now. If not, the restart is withheld for a while.
func (g *Guard) admitted(ctx context.Context, reason string) bool {
	if g.o.Fleet == nil {
		return true
	}
	if !ofThisMachine(reason) && !backoff.Sleep(ctx, rand.N(spread)) {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	err := g.o.Fleet.Acquire(limited, reason)
	switch {
	case err == nil:
		g.mu.Lock()
		g.slot = true
		g.mu.Unlock()
		return true
	case !errors.Is(err, ErrFleetBusy) && ofThisMachine(reason):
		g.log.Warn("the bound of restarts in the cluster is not known, restarting for a reason of this machine", "reason", reason, "err", err)
		return true
	case !errors.Is(err, ErrFleetBusy):
		err = fmt.Errorf("how many other nodes restart their kubelets is not known: %w", err)
	}
	g.mu.Lock()
	g.held, g.heldUntil = err.Error(), time.Now().Add(fleetPause+rand.N(fleetPause))
	g.mu.Unlock()
	return false
}

// reportHeld puts into the report that the fleet withholds the restart: until the next look the report would not give a reason for the wait.
func (g *Guard) reportHeld() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.report.Withheld, g.report.NextRestart = g.held, g.heldUntil
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
