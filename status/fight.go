package status

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fight notices that a second writer keeps changing a status back. What the API server
// itself makes of a write is no fight, see decision.
type fight struct {
	// rounds counts the writes of one and the same version beyond the first.
	rounds  int
	version uint64
	last    time.Time
	// writer is the other writer, as far as the managed fields of the pod show it.
	writer string
}

const (
	// fightRounds is how many rewrites of one version in a row make a fight.
	fightRounds = 3
	// fightMemory is how long a round counts. It is longer than the
	// longest pause between two rounds.
	fightMemory = 10 * time.Minute
)

// wait is how long a rewrite of an unchanged status must be put off.
func (f fight) wait(p *plan, now time.Time, jitter float64) time.Duration {
	if f.version != p.version || f.rounds < fightRounds {
		return 0
	}
	return f.last.Add(fightBackoff.Wait(f.rounds-fightRounds+1, jitter)).Sub(now)
}

// recordWrite counts a write, and logs it when it is part of a fight.
func (m *Manager) recordWrite(p *plan) {
	if p.accepted < p.version { // a new version, not a rewrite
		m.cache.endFight(p.uid)
		return
	}
	m.metrics.reconciles.WithLabelValues("rewritten").Inc()
	f := p.fight
	now := time.Now()
	if f.version != p.version || now.Sub(f.last) > fightMemory {
		f = fight{version: p.version}
	}
	f.rounds++
	f.last = now
	if p.watched != nil {
		f.writer = otherWriter(p.watched, m.opts.FieldManager)
	}
	m.cache.setFight(p.uid, f)
	if f.rounds >= fightRounds {
		m.metrics.fights.Inc()
		m.opts.Logger.Warn("another writer keeps changing the pod status back; slowing down",
			"pod", p.podName(), "uid", p.target, "version", p.version, "rounds", f.rounds, "writer", f.writer)
	}
}

// otherWriter returns the last writer of the status besides this manager.
func otherWriter(pod *v1.Pod, ourName string) string {
	var name string
	var when time.Time
	for i := range pod.ManagedFields {
		f := &pod.ManagedFields[i]
		// A status is written through its subresource only; others have written the spec.
		if f.Manager == ourName || f.Subresource != "status" || f.Time == nil || f.Time.Time.Before(when) {
			continue
		}
		name, when = f.Manager, f.Time.Time
	}
	if name == "" {
		return "unknown"
	}
	return name
}

// Fight is a pod whose status another writer keeps changing back.
type Fight struct {
	UID       types.UID
	Namespace string
	Name      string
	Rounds    int
	Writer    string
	Last      time.Time
}

// Fights returns the pods whose status another writer keeps changing back, by name.
func (m *Manager) Fights() []Fight {
	fights := m.cache.fighting()
	slices.SortFunc(fights, func(a, b Fight) int { return compareNames(a.Namespace, a.Name, b.Namespace, b.Name) })
	return fights
}
