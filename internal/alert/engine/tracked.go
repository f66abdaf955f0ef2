package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// alert is a rule that is, or was, true of one subject.
type tracked struct {
	alert.Alert
	rule *ruleset.Rule // nil: it is not in force any more
	// over is since when the expression is false although the alert fires; zero: it is true.
	over time.Time
	// told: the alert was passed on to the outputs; done lists the outputs that have delivered its
	// present state.
	told bool
	done []string
	// acted: the actions of the rule were asked for.
	acted bool
	// renewed is when the outputs were last given annotations that had changed.
	renewed time.Time
	// passed are the annotations that the outputs have.
	passed map[string]string
}

// identity is what distinguishes alerts.
type identity struct {
	rule      string
	uid       types.UID
	container string
}

func (a *tracked) identity() identity { return identityOf(&a.Alert) }

// identityOf distinguishes the alerts about rules that fail by the rule.
func identityOf(a *alert.Alert) identity {
	if a.Rule == ruleFails.Name {
		return identity{rule: a.Rule, container: a.Labels["rule"]}
	}
	return identity{a.Rule, a.UID, a.Container}
}

// step advances an alert by the truth of its expression at an instant. step returns the new state
// (empty: the alert never fired and is no longer pending) and the instant of the next evaluation
// (zero: no further evaluation is needed).
func (a *tracked) step(isTrue bool, now time.Time) (state alert.State, look time.Time) {
	switch a.State {
	case alert.Pending:
		if !isTrue {
			return "", time.Time{}
		}
		if due := a.Since.Add(a.rule.For); now.Before(due) {
			return alert.Pending, due
		}
		return alert.Firing, time.Time{}
	case alert.Firing:
		if isTrue {
			a.over = time.Time{}
			return alert.Firing, time.Time{}
		}
		if a.over.IsZero() {
			a.over = now
		}
		if due := a.over.Add(a.rule.KeepFiringFor); now.Before(due) {
			return alert.Firing, due
		}
		return alert.Resolved, time.Time{}
	}
	return a.State, time.Time{}
}

// happened takes a transition for which the expression of an event rule is true.
func (a *tracked) happened(now time.Time) (look time.Time) {
	a.over = now
	return now.Add(a.rule.KeepFiringFor)
}

// shift moves the start of running durations after a jump of the clock.
func (a *tracked) shift(by time.Duration) {
	if a.State == alert.Pending {
		a.Since = a.Since.Add(by)
	}
	if !a.over.IsZero() {
		a.over = a.over.Add(by)
	}
}

// fingerprint is the same for the same rule and labels.
func fingerprint(labels map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		h.Write([]byte(name + "\x00" + labels[name] + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// compareAlerts orders alerts by when they began.
func compareAlerts(a, b *tracked) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod),
		cmp.Compare(a.UID, b.UID), cmp.Compare(a.Container, b.Container))
}
