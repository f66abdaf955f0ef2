package alert

import (
	"cmp"
	"slices"
	"strings"
)

// Counts reports whether an alert needs attention.
func (a *Alert) Counts() bool { return a.State == Firing && a.Silenced == "" }

// Sorted returns alerts in display order: firing ones first, then by severity, then the oldest
// first.
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

// rank is the position of a value in an order; other values come last.
func rank[T comparable](value T, order ...T) int {
	if i := slices.Index(order, value); i >= 0 {
		return i
	}
	return len(order)
}
