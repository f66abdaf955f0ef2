package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	maxTimes  = 100  // of lines that may become frequent, by condition
	maxRecent = 100  // problems that are kept
	maxOutbox = 1024 // problems of different pods and reasons that wait
)

// state is what survives a restart.
type state struct {
	Boot       string                 `json:"boot"`
	Positions  map[string]string      `json:"positions"`
	Counts     map[string]int64       `json:"counts"`
	Conditions map[string]Condition   `json:"conditions"`
	Times      map[string][]time.Time `json:"times"` // of lines that may become frequent, by condition
	Recent     []Problem              `json:"recent"`
	// Outbox has the problems that were not passed on yet, one per key.
	Outbox []waiting `json:"outbox"`

	last    map[key]time.Time // when a problem was last given away
	dirty   bool              // it has changed since it was encoded
	unsaved bool              // the last write has failed
}

// waiting is a problem that waits to be given away.
type waiting struct {
	Problem
	// Dropped counts problems for which there was no room.
	Dropped int `json:"dropped,omitempty"`
}

// key is what makes problems the same.
type key struct {
	reason    string
	uid       types.UID
	container string
}

func keyOf(p *Problem) key {
	k := key{reason: p.Reason}
	if p.Victim != nil {
		k.uid, k.container = p.Victim.UID, p.Victim.ContainerID
	}
	return k
}

// loadState reads the state. Counts, conditions and times are of one boot; positions are not.
func loadState(file, boot string) (s state, err error) {
	if file != "" {
		var data []byte
		if data, err = os.ReadFile(file); err == nil {
			if err = json.Unmarshal(data, &s); err != nil {
				s = state{}
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if s.Boot != boot {
		s.Counts, s.Conditions, s.Times = nil, nil, nil
	}
	s.Boot = boot
	if s.Positions == nil {
		s.Positions = map[string]string{}
	}
	if s.Counts == nil {
		s.Counts = map[string]int64{}
	}
	if s.Conditions == nil {
		s.Conditions = map[string]Condition{}
	}
	if s.Times == nil {
		s.Times = map[string][]time.Time{}
	}
	s.last = map[key]time.Time{}
	return s, err
}

func (s *state) setCondition(c Condition) {
	old, known := s.Conditions[c.Type]
	if !known && !c.True {
		return
	}
	if known && old.True == c.True {
		c.Since = old.Since
	}
	s.Conditions[c.Type] = c
	s.dirty = true
}

// happened remembers when a line came that may become frequent.
func (s *state) happened(f found, l line) {
	c := f.Frequent.Condition
	times := append(s.Times[c], l.at)
	s.Times[c] = times[max(0, len(times)-maxTimes):]
	s.dirty = true
}

// conditions are the conditions by lines and by how often lines came, by type.
func (s *state) conditions(now time.Time, rules []rule) []Condition {
	list := []Condition{}
	for _, c := range s.Conditions {
		list = append(list, c)
	}
	for i := range rules {
		f := rules[i].Frequent
		if f == nil || slices.ContainsFunc(list, func(c Condition) bool { return c.Type == f.Condition }) {
			continue
		}
		if c, ok := frequent(s.Times[f.Condition], f, rules[i].Reason, now); ok {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Condition) int { return strings.Compare(a.Type, b.Type) })
	return list
}

// frequent is the condition of lines at these times, false if there never was one.
func frequent(times []time.Time, f *Frequent, reason string, now time.Time) (Condition, bool) {
	if len(times) == 0 {
		return Condition{}, false
	}
	recent := slices.DeleteFunc(slices.Clone(times), func(t time.Time) bool { return now.Sub(t) >= f.Within })
	c := Condition{Type: f.Condition, Reason: reason, True: len(recent) >= f.Count, Since: times[0]}
	c.Text = fmt.Sprintf("%d within %v", len(recent), f.Within)
	switch {
	case c.True:
		c.Since = recent[f.Count-1]
	case len(times) > len(recent):
		c.Since = times[len(times)-len(recent)-1].Add(f.Within)
	}
	return c, true
}

// post adds a problem to the outbox. A repeated problem is only counted.
func (s *state) post(p Problem) {
	s.dirty = true
	if n := len(s.Recent); n > 0 && keyOf(&s.Recent[n-1]) == keyOf(&p) {
		merge(&s.Recent[n-1], p)
	} else {
		s.Recent = append(s.Recent, p)
		s.Recent = slices.Delete(s.Recent, 0, max(0, len(s.Recent)-maxRecent))
	}
	for i := range s.Outbox {
		if keyOf(&s.Outbox[i].Problem) == keyOf(&p) {
			merge(&s.Outbox[i].Problem, p)
			return
		}
	}
	if len(s.Outbox) >= maxOutbox {
		s.Outbox[maxOutbox-1].Dropped++
		return
	}
	s.Outbox = append(s.Outbox, waiting{Problem: p})
}

// merge counts a later problem of the same kind. The ID of the first line stays.
func merge(into *Problem, later Problem) {
	into.At, into.Text, into.Count = later.At, later.Text, into.Count+later.Count
	into.Victim = later.Victim
}

// ready are the problems whose time has come.
func (s *state) ready(now time.Time, interval time.Duration, all bool) (list []Problem) {
	for _, w := range s.Outbox {
		if last, given := s.last[keyOf(&w.Problem)]; all || !given || now.Sub(last) >= interval || now.Before(last) {
			list = append(list, w.Problem)
			s.last[keyOf(&w.Problem)] = now
		}
	}
	return list
}

// given removes problems from the outbox. Repetitions that arrived meanwhile stay, counted from
// there.
func (s *state) given(list []Problem) {
	for _, p := range list {
		i := slices.IndexFunc(s.Outbox, func(w waiting) bool { return w.ID == p.ID })
		if i < 0 {
			continue
		}
		if w := &s.Outbox[i]; w.Count > p.Count {
			w.Count -= p.Count
			w.First, w.ID = w.At, w.ID+"+"
		} else {
			s.Outbox = slices.Delete(s.Outbox, i, i+1)
		}
		s.dirty = true
	}
}

// forget drops what no longer keeps a problem back.
func (s *state) forget(now time.Time, interval time.Duration) {
	for k, last := range s.last {
		if now.Sub(last) >= interval || now.Before(last) {
			delete(s.last, k)
		}
	}
}
