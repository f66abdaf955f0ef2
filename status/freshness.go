package status

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Delivery is how far the status of a pod has come.
type Delivery struct {
	// Pending has the newest change and what the API server has of it. If all was accepted, only
	// the identity and the versions are set.
	Pending
	// AcceptedAt is when the API server accepted the version Accepted, zero if it has not accepted any
	// in this process.
	AcceptedAt time.Time
	// Writer is another writer that keeps changing the status back, Rounds how often it has.
	Writer string
	Rounds int
}

// Delivery returns how far the status of a pod has come. The UID of a mirror pod stands for its
// static pod. Unlike [Manager.Pending] it looks at one pod only.
func (m *Manager) Delivery(uid types.UID) (Delivery, bool) {
	return m.cache.deliveryOf(m.opts.Pods.TranslateUID(uid))
}

func (c *cache) deliveryOf(uid types.UID) (Delivery, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok {
		return Delivery{}, false
	}
	d := Delivery{Pending: e.describe(uid)}
	if e.acceptedAt != 0 {
		d.AcceptedAt = time.Unix(0, e.acceptedAt)
	}
	if f, ok := c.fights[uid]; ok && f.rounds >= fightRounds && f.version == e.version {
		d.Writer, d.Rounds = f.writer, f.rounds
	}
	return d, true
}
