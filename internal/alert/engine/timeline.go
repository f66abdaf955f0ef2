package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/view"
)

// Timeline evaluates rules at the instants given by its caller: it has the core of an [Engine] and neither a clock nor a
// goroutine. Tests of rules run on it. It writes nothing and notifies no output. One goroutine uses it.
type Timeline struct {
	core *core
	now  time.Time
	// arrive is called with each instant before the facts of that instant are read from the source.
	arrive func(time.Time)
}

// NewTimeline returns a timeline that begins at an instant. The function is called with each instant before facts are read; the
// StateFile of the options is not used.
func NewTimeline(options Options, start time.Time, arrive func(time.Time)) *Timeline {
	return &Timeline{core: newCore(&options, start), now: start, arrive: arrive}
}

// maxLooks is how often the subjects may be looked at between two instants.
const maxLooks = 1_000_000

// Advance lets time pass until an instant, with all that is due on the way.
func (t *Timeline) Advance(until time.Time) error {
	for range maxLooks {
		at := earliest(t.core.schedule.next(), t.core.silenceEnds())
		if at.IsZero() || at.After(until) {
			t.now = until
			return nil
		}
		if at.After(t.now) {
			t.now = at
		}
		t.arrive(t.now)
		if ends := t.core.silenceEnds(); !ends.IsZero() && !t.now.Before(ends) {
			t.core.reconsider(t.now)
		}
		if uid, ok := t.core.due(t.now); ok {
			t.core.evaluate(context.Background(), uid, t.now)
		}
	}
	return errors.New("the test looks at its subjects too often")
}

// News is the set of changes at an instant.
type News struct {
	// Changed are the UIDs of pods about which something has changed; the empty one is the node's.
	Changed []types.UID
	// ClockStep is how far the clock of the node has jumped. The time of the timeline continues.
	ClockStep time.Duration
	// Guard replaces the guard of the options, unless it is nil.
	Guard view.GuardSource
}

// Learn advances time to an instant, calls a function that changes the facts, and evaluates the changes. Subjects that are due at
// the instant itself are evaluated afterwards.
func (t *Timeline) Learn(at time.Time, learn func() (News, error)) error {
	if err := t.Advance(at.Add(-1)); err != nil {
		return err
	}
	t.now = at
	news, err := learn()
	if err != nil {
		return err
	}
	if news.Guard != nil {
		t.core.source.Guard = news.Guard
	}
	if news.ClockStep != 0 {
		t.core.noteStep(news.ClockStep, t.now)
	}
	slices.Sort(news.Changed)
	for _, uid := range slices.Compact(news.Changed) {
		t.core.evaluate(context.Background(), uid, t.now)
	}
	return nil
}

// Alerts are the alerts that are pending or firing, without those about rules that fail.
func (t *Timeline) Alerts() (list []alert.Alert) {
	for _, a := range t.core.sorted() {
		if a.rule != ruleFails {
			list = append(list, a.Alert)
		}
	}
	return list
}

// Faults returns the errors of rules that could not be evaluated, by the name of the rule.
func (t *Timeline) Faults() map[string]string {
	faults := make(map[string]string, len(t.core.faults))
	for name, f := range t.core.faults {
		faults[name] = f.message
	}
	return faults
}
