package alert

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits on a silence.
const (
	maxMatchers = 32
	maxMatcher  = 1 << 10 // bytes of a name or value
	maxComment  = 4 << 10
	maxBy       = 256
	maxSilence  = 366 * 24 * time.Hour
)

// Check returns the problems of a silence that is to begin now: the field, and what to write there.
func (s *Silence) Check(now time.Time) error {
	switch {
	case len(s.Matchers) == 0:
		return errors.New("no matchers; name at least one label, such as alertname=KubePodNotReady")
	case len(s.Matchers) > maxMatchers:
		return fmt.Errorf("matchers: %d are too many, want at most %d", len(s.Matchers), maxMatchers)
	case s.Until.IsZero():
		return errors.New("until: is missing; say when the silence ends, such as 2026-01-02T15:04:05Z")
	case !s.Until.After(now):
		return fmt.Errorf("until: %s is not in the future; it is %s", s.Until.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case s.Until.Sub(now) > maxSilence:
		return fmt.Errorf("until: %s is more than a year away; a rule that should never warn is better removed", s.Until.Format(time.RFC3339))
	case strings.TrimSpace(s.Comment) == "":
		return errors.New("comment: is empty; say why the alerts are silenced")
	case len(s.Comment) > maxComment:
		return fmt.Errorf("comment: %d bytes are too many, want at most %d", len(s.Comment), maxComment)
	case strings.TrimSpace(s.By) == "":
		return errors.New("by: is empty; say who silences the alerts")
	case len(s.By) > maxBy:
		return fmt.Errorf("by: %d bytes are too many, want at most %d", len(s.By), maxBy)
	}
	for i, m := range s.Matchers {
		if err := m.check(); err != nil {
			return fmt.Errorf("matchers[%d]: %w", i, err)
		}
	}
	if !slices.ContainsFunc(s.Matchers, func(m Matcher) bool { return !m.matchesAll() }) {
		return errors.New("matchers: together they match every alert; add a more specific matcher")
	}
	return nil
}

// everywhere are labels that each alert has.
var everywhere = []string{"alertname", "severity"}

// matchesAll reports whether a matcher leaves no alert out: an alert without the label matches, or each has the label and any value
// matches. Whether a regular expression matches any value is tried with values that none would name.
func (m Matcher) matchesAll() bool {
	if m.Matches("") {
		return true
	}
	return m.IsRegex && slices.Contains(everywhere, m.Name) && m.Matches("q") && m.Matches("Zq_7") && m.Matches("aStatusdAlertThatThereIsNot")
}
