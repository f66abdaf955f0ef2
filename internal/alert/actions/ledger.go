package actions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/wholefile"
)

// Entry is an action that was begun.
type Entry struct {
	Rule    string             `json:"rule"`
	Kind    ruleset.ActionKind `json:"kind"`
	Subject string             `json:"subject"`
	At      time.Time          `json:"at"`
	DryRun  bool               `json:"dryRun,omitempty"`
	// Busy: it is in progress. Done: it succeeded.
	Busy bool `json:"-"` // nothing is in progress after a restart
	Done bool `json:"done,omitempty"`
}

// Hold is a mark on the Node, a taint or a cordon, and the alerts that want it.
type Hold struct {
	Mark   string   `json:"mark"`
	Alerts []string `json:"alerts"` // by fingerprint
	// Ours: the Node did not have the mark before, so that the mark is removed after the last alert.
	Ours bool `json:"ours"`
}

// Ledger has the begun actions, the oldest first, and the held marks.
type Ledger struct {
	Entries []Entry `json:"entries"`
	Holds   []Hold  `json:"holds"`
}

const (
	// maxEntries bounds the ledger. Budgets keep it far below.
	maxEntries = 1000
	// keep is how long entries are kept: longer than any sensible budget.
	keep = 24 * time.Hour
)

// fits reports when a budget has room for one more, zero if it has room now. The entries are the oldest first.
func (l *Ledger) fits(now time.Time, per time.Duration, budget int, counts func(*Entry) bool) time.Time {
	var begun []time.Time
	for i := range l.Entries {
		if e := &l.Entries[i]; counts(e) && now.Sub(e.At) < per {
			begun = append(begun, e.At)
		}
	}
	if len(begun) < budget {
		return time.Time{}
	}
	return begun[len(begun)-budget].Add(per)
}

// settle dates what a clock that was ahead has dated into the future to now: it counts for as long as the limits say, and no longer.
func (l *Ledger) settle(now time.Time) {
	for i := range l.Entries {
		if l.Entries[i].At.After(now) {
			l.Entries[i].At = now
		}
	}
}

// begin notes an action, and forgets old ones.
func (l *Ledger) begin(e Entry, keepFor time.Duration) {
	l.Entries = slices.DeleteFunc(l.Entries, func(old Entry) bool { return !old.Busy && e.At.Sub(old.At) > max(keep, keepFor) })
	if extra := len(l.Entries) - maxEntries + 1; extra > 0 {
		l.Entries = slices.Delete(l.Entries, 0, extra)
	}
	l.Entries = append(l.Entries, e)
}

// end notes what became of the action in progress on a subject.
func (l *Ledger) end(subject string, kind ruleset.ActionKind, done bool) {
	for i := range l.Entries {
		if e := &l.Entries[i]; e.Subject == subject && e.Kind == kind && e.Busy {
			e.Busy, e.Done = false, done
		}
	}
}

// hold returns the hold of a mark, or nil.
func (l *Ledger) hold(mark string) *Hold {
	for i := range l.Holds {
		if l.Holds[i].Mark == mark {
			return &l.Holds[i]
		}
	}
	return nil
}

// join adds an alert to the alerts that want a mark.
func (l *Ledger) join(mark, fingerprint string, ours bool) {
	h := l.hold(mark)
	if h == nil {
		l.Holds = append(l.Holds, Hold{Mark: mark, Ours: ours})
		h = &l.Holds[len(l.Holds)-1]
	}
	if !slices.Contains(h.Alerts, fingerprint) {
		h.Alerts = append(h.Alerts, fingerprint)
	}
}

// wants reports whether an alert wants a mark.
func (l *Ledger) wants(fingerprint string) bool {
	return slices.ContainsFunc(l.Holds, func(h Hold) bool { return slices.Contains(h.Alerts, fingerprint) })
}

// leave takes an alert from the marks that it wants.
func (l *Ledger) leave(fingerprint string) {
	for i := range l.Holds {
		h := &l.Holds[i]
		h.Alerts = slices.DeleteFunc(h.Alerts, func(f string) bool { return f == fingerprint })
	}
}

// free returns the marks that no alert wants any more.
func (l *Ledger) free() (marks []string) {
	for i := range l.Holds {
		if len(l.Holds[i].Alerts) == 0 {
			marks = append(marks, l.Holds[i].Mark)
		}
	}
	return marks
}

func (l *Ledger) drop(mark string) {
	l.Holds = slices.DeleteFunc(l.Holds, func(h Hold) bool { return h.Mark == mark })
}

// loadLedger reads a ledger. If the file is missing or damaged the ledger is empty: then budgets start full.
func loadLedger(path string) (*Ledger, error) {
	l := &Ledger{}
	if path == "" {
		return l, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(content, l)
	}
	if err != nil {
		return &Ledger{}, fmt.Errorf("actions: read %s: %w", path, err)
	}
	return l, nil
}

// save writes a ledger so that it survives a power loss.
func (l *Ledger) save(path string) error {
	if path == "" {
		return nil
	}
	content, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("actions: %w", err)
	}
	if err := wholefile.Write(path, content); err != nil {
		return fmt.Errorf("actions: write %s: %w", path, err)
	}
	return nil
}
