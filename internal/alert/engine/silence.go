package engine

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/alert"
)

const (
	// maxSilences is how many silences there may be.
	maxSilences = 1000
	maxMatchers = 32
	maxPattern  = 1024
)

// silence is a silence with its patterns compiled.
type silence struct {
	alert.Silence
	patterns []*regexp.Regexp // by matcher; nil: it is compared as it is
}

func newSilence(s alert.Silence) (*silence, error) {
	if len(s.Matchers) == 0 || len(s.Matchers) > maxMatchers {
		return nil, fmt.Errorf("a silence has %d matchers, want 1 to %d", len(s.Matchers), maxMatchers)
	}
	compiled := &silence{Silence: s, patterns: make([]*regexp.Regexp, len(s.Matchers))}
	for i, m := range s.Matchers {
		if m.Name == "" || len(m.Name) > maxPattern || len(m.Value) > maxPattern {
			return nil, fmt.Errorf("matcher %d: the name is empty, or the text is longer than %d bytes", i+1, maxPattern)
		}
		if !m.IsRegex {
			continue
		}
		pattern, err := regexp.Compile("^(?:" + m.Value + ")$")
		if err != nil {
			return nil, fmt.Errorf("matcher %s: %w", m.Name, err)
		}
		compiled.patterns[i] = pattern
	}
	return compiled, nil
}

// matches reports whether all matchers match. A label that an alert does not have is empty, as in Alertmanager.
func (s *silence) matches(labels map[string]string) bool {
	for i, m := range s.Matchers {
		equal := labels[m.Name] == m.Value
		if s.patterns[i] != nil {
			equal = s.patterns[i].MatchString(labels[m.Name])
		}
		if equal != m.IsEqual {
			return false
		}
	}
	return true
}

// silencedBy returns the ID of the matching silence that lasts longest, or "".
func (c *core) silencedBy(labels map[string]string, now time.Time) string {
	var longest *silence
	for _, s := range c.silences {
		if now.Before(s.Until) && s.matches(labels) && (longest == nil || s.Until.After(longest.Until) || s.Until.Equal(longest.Until) && s.ID < longest.ID) {
			longest = s
		}
	}
	if longest == nil {
		return ""
	}
	return longest.ID
}

// addSilence stores a silence, under its ID if it has one.
func (c *core) addSilence(s alert.Silence, now time.Time) (alert.Silence, error) {
	s.Created = now
	if s.ID == "" {
		s.ID = newID()
	}
	if !s.Until.After(now) {
		return s, errors.New("the end of the silence is in the past")
	}
	compiled, err := newSilence(s)
	if err != nil {
		return s, err
	}
	if _, replaces := c.silences[s.ID]; !replaces && len(c.silences) >= maxSilences {
		return s, fmt.Errorf("there are %d silences, and no more are kept: expire some", len(c.silences))
	}
	c.silences[s.ID] = compiled
	c.lines = append(c.lines, line{Silence: &s})
	c.reconsider(now)
	return s, nil
}

// expire ends a silence and reports whether the silence existed.
func (c *core) expire(id string, now time.Time) bool {
	if _, ok := c.silences[id]; !ok {
		return false
	}
	delete(c.silences, id)
	c.lines = append(c.lines, line{Expired: id})
	c.reconsider(now)
	return true
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// reconsider passes on alerts that became silenced, or no longer are, after silences have changed
// or ended.
func (c *core) reconsider(now time.Time) {
	for id, s := range c.silences {
		if !now.Before(s.Until) {
			delete(c.silences, id)
		}
	}
	for _, a := range c.sorted() {
		if a.State != alert.Firing {
			continue
		}
		before, told := a.Silenced, a.told
		c.tell(a, now)
		if a.Silenced == before {
			continue
		}
		c.touch(a)
		if told { // outputs that send it again and again must stop, or begin again
			c.pass(a, now)
		}
	}
}

// silenceEnds returns the time at which the next silence ends, or zero.
func (c *core) silenceEnds() (at time.Time) {
	for _, s := range c.silences {
		at = earliest(at, s.Until)
	}
	return at
}

// listSilences returns the silences that have not ended, the first to end first.
func (c *core) listSilences(now time.Time) []alert.Silence {
	list := make([]alert.Silence, 0, len(c.silences))
	for _, s := range c.silences {
		if now.Before(s.Until) {
			list = append(list, s.Silence)
		}
	}
	slices.SortFunc(list, func(a, b alert.Silence) int {
		if order := a.Until.Compare(b.Until); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}
