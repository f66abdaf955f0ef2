package status

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Delivery returns the progress of the delivery of a pod's status. The UID of a mirror pod stands
// for its static pod. Unlike [Manager.Pending], Delivery reads one pod only.
func (m *Manager) Delivery(uid types.UID) (podstatus.Delivery, bool) {
	return m.cache.deliveryOf(m.opts.Pods.TranslateUID(uid))
}

func (c *cache) deliveryOf(uid types.UID) (podstatus.Delivery, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok {
		return podstatus.Delivery{}, false
	}
	p := c.describe(uid, e)
	d := podstatus.Delivery{
		Version: p.Version, Accepted: p.Accepted, Since: p.Since, Attempts: p.Attempts, NextTry: p.NextTry, Held: p.Reason, Refused: p.Refused,
	}
	if p.Err != nil {
		d.Error = p.Err.Error()
	}
	if e.acceptedAt != 0 {
		d.AcceptedAt = time.Unix(0, e.acceptedAt)
	}
	if f, ok := c.fights[uid]; ok && f.lasts(e.version, time.Now()) {
		d.Writer, d.Rounds = f.writer, f.rounds
	}
	return d, true
}
