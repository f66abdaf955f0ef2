package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
)

// restore takes the lines of the state file, the oldest first.
func (c *core) restore(lines []*line, now time.Time) {
	stored := map[slot]*storedAlert{}
	for _, l := range lines {
		switch {
		case l.Alert != nil:
			stored[slotOf(identity{l.Alert.Rule, l.Alert.UID, l.Alert.Container}, l.Alert.State, l.Alert.Since)] = l.Alert
		case l.Gone != nil:
			delete(stored, slot{identity{l.Gone.Rule, types.UID(l.Gone.UID), l.Gone.Container}, l.Gone.Ended})
		case l.Silence != nil:
			if s, err := newSilence(*l.Silence); err == nil && now.Before(s.Until) && len(c.silences) < maxSilences {
				c.silences[s.ID] = s
			}
		case l.Expired != "":
			delete(c.silences, l.Expired)
		case l.Log != nil:
			c.memory.log = slices.Concat(c.memory.log, l.Log)
		}
		c.seen = max(c.seen, l.Seen)
	}
	c.newest = c.seen
	for _, s := range slices.SortedFunc(maps.Values(stored), func(a, b *storedAlert) int { return compareAlerts(&tracked{Alert: a.Alert}, &tracked{Alert: b.Alert}) }) {
		c.revive(s, now)
	}
}

// revive makes an alert of a stored one.
func (c *core) revive(s *storedAlert, now time.Time) {
	a := &tracked{Alert: s.Alert, over: s.Over, told: s.Told, done: s.Done, acted: s.Acted}
	// The clock was set back between two runs: a duration since a future instant starts again now.
	if a.State == alert.Pending && a.Since.After(now) {
		a.Since = now
	}
	if a.over.After(now) {
		a.over = now
	}
	if r := c.set.Rule(s.Rule); r != nil && r.Expr == s.Expr && string(r.Scope) == s.Scope && r.Severity == s.Severity && (s.Form == "" || s.Form == fingerprint(r.Labels)) {
		a.rule = r
	}
	if s.Rule == ruleFails.Name {
		a.rule = ruleFails
	}
	switch a.State {
	case alert.Resolved:
		c.ended[a.slot()] = a
	case alert.Pending, alert.Firing:
		c.alerts[a.identity()] = a
		sub := c.subject(a.UID)
		sub.alerts = append(sub.alerts, a)
	}
	c.version++
}

// resume passes on again what the outputs may not have, or must be reminded of, after a restart. The
// subjects that have alerts must be looked at afterwards; it returns them.
func (c *core) resume(now time.Time) []types.UID {
	ended := make([]*tracked, 0, len(c.ended))
	for _, a := range c.ended {
		ended = append(ended, a)
	}
	slices.SortFunc(ended, compareAlerts)
	for _, a := range ended {
		c.pass(a, now)
	}
	for _, a := range c.sorted() {
		if a.State != alert.Firing {
			continue
		}
		told := a.told
		c.tell(a, now) // a silence may have begun or ended meanwhile
		if told {
			c.pass(a, now)
		}
	}
	uids := make([]types.UID, 0, len(c.subjects))
	for uid, sub := range c.subjects {
		if len(sub.alerts) > 0 {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// snapshot is everything that counts, as lines.
func (c *core) snapshot() (data []byte, err error) {
	lines := []line{{Seen: c.newest}}
	if len(c.memory.log) > 0 {
		lines = append(lines, line{Log: c.memory.log})
	}
	for _, s := range c.silences {
		lines = append(lines, line{Silence: &s.Silence})
	}
	for _, a := range c.alerts {
		lines = append(lines, line{Alert: store(a)})
	}
	for _, a := range c.ended {
		lines = append(lines, line{Alert: store(a)})
	}
	for i := range lines {
		if data, err = lines[i].append(data); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// news returns the lines of the changes since the last call.
func (c *core) news() (data []byte, err error) {
	for s, a := range c.unsaved {
		l := line{Seen: c.newest}
		if a != nil {
			l.Alert = store(a)
		} else {
			l.Gone = &storedID{s.rule, string(s.uid), s.container, s.ended}
		}
		if data, err = l.append(data); err != nil {
			return nil, err
		}
	}
	clear(c.unsaved)
	for i := range c.lines {
		if data, err = c.lines[i].append(data); err != nil {
			return nil, err
		}
	}
	c.lines = nil
	return data, nil
}
