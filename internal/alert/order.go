package alert

import (
	"cmp"
	"slices"
	"strings"
)

// Counts reports whether an alert is one that someone must look at.
func (a *Alert) Counts() bool { return a.State == Firing && a.Silenced == "" }

// Sorted returns alerts in the order in which they are shown: those that fire first, the most severe
// first, the oldest first.
func Sorted(alerts []Alert) []Alert {
	sorted := slices.Clone(alerts)
	slices.SortStableFunc(sorted, func(a, b Alert) int {
		return cmp.Or(
			cmp.Compare(rank(a.State, Firing, Pending, Resolved), rank(b.State, Firing, Pending, Resolved)),
			cmp.Compare(rank(a.Severity, "critical", "warning", "info"), rank(b.Severity, "critical", "warning", "info")),
			a.Since.Compare(b.Since), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Fingerprint, b.Fingerprint),
		)
	})
	return sorted
}

// rank is the place of a value in an order; one that is not in it comes last.
func rank[T comparable](value T, order ...T) int {
	if i := slices.Index(order, value); i >= 0 {
		return i
	}
	return len(order)
}
