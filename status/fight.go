package status

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fight detects that a second writer keeps changing a status back. Changes by the API server itself
// are decisions, not fights. An occasional writer is not a fight either: whenever a node was
// unreachable, the node lifecycle controller sets its pods not ready, and the node restores their
// readiness at once.
type fight struct {
	version uint64
	// rounds counts the consecutive writes of this version that another writer has changed back
	// within the fightWindow.
	rounds int
	// last is when the version was last written, and changed when another writer's later change was
	// first observed, or zero.
	last, changed time.Time
	// writer is the other writer, as far as the managed fields of the pod show it.
	writer string
}

const (
	// fightRounds is how many rewrites of one version in a row make a fight.
	fightRounds = 3
	// fightWindow is the longest time between our write and the other writer's in a fight.
	fightWindow = 30 * time.Second
	// fightMemory is how long a fight lasts after its last round. It is longer than the longest
	// pause between two rounds.
	fightMemory = 10 * time.Minute
	// fightGrave is how long readiness and phase wait in a fight at most, as long as a kubelet takes
	// to notice.
	fightGrave = 10 * time.Second
)

// lasts reports whether a fight about the version is going on.
func (f fight) lasts(version uint64, now time.Time) bool {
	return f.rounds >= fightRounds && f.version == version && now.Sub(f.last) < fightMemory
}

// wait is how long a rewrite of an unchanged status must be put off.
func (f fight) wait(p *plan, merged *v1.PodStatus, now time.Time, jitter float64) time.Duration {
	if !f.lasts(p.version, now) {
		return 0
	}
	wait := fightBackoff.Wait(f.rounds-fightRounds+1, jitter)
	if graveDifference(p.base.status, merged) {
		wait = min(wait, fightGrave)
	}
	return f.last.Add(wait).Sub(now)
}

// noteForeignWrite records that another writer has changed the status of a pod.
func (c *cache) noteForeignWrite(uid types.UID, e *entry, now time.Time) {
	f := c.fights[uid]
	if f.version != e.version {
		f = fight{version: e.version, last: time.Unix(0, e.acceptedAt)}
	}
	f.changed = cmp.Or(f.changed, now)
	c.fights[uid] = f
}

// foreignWrite is noteForeignWrite for a turn, which has found that its write did not last.
func (c *cache) foreignWrite(uid types.UID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok {
		c.noteForeignWrite(uid, e, now)
	}
}

// recordWrite counts a write, and logs it when it is part of a fight.
func (m *Manager) recordWrite(p *plan) {
	if p.accepted < p.version { // a new version, not a rewrite
		m.cache.endFight(p.uid)
		return
	}
	m.metrics.reconciles.WithLabelValues("rewritten").Inc()
	f := p.fight
	if f.version != p.version || f.changed.IsZero() {
		return // no other writer was seen: the server has overruled or forgotten the status
	}
	if f.changed.Sub(f.last) < fightWindow {
		f.rounds++
	} else {
		f.rounds = 0
	}
	f.last, f.changed = time.Now(), time.Time{}
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
		// A status is written through its subresource only; other entries are writes of the spec.
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
