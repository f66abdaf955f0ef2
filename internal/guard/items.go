package guard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/text"
)

// Items are the evidence in words, in the order in which an operator would look.
func Items(e Evidence, now time.Time) []Item {
	var items []Item
	items = append(items, item("process", e.Process, processWords))
	items = append(items, item("healthz", e.Healthz, answerWords))
	for _, name := range slices.Sorted(maps.Keys(e.Parts)) {
		items = append(items, item("healthz/"+name, e.Parts[name], answerWords))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Sources)) {
		items = append(items, item("source "+name, e.Sources[name], answerWords))
	}
	return append(items,
		item("lease", e.Lease, func(l Lease) (bool, string) { return leaseWords(l, now) }),
		item("pleg", e.PLEG, func(p PLEG) (bool, string) { return plegWords(p, now) }),
		item("operations", e.Operations, func(o Operations) (bool, string) {
			return 2*o.Errors <= o.Count, fmt.Sprintf("%d requests to the runtime, %d failed, %s in the mean", o.Count, o.Errors, text.Took(o.Mean))
		}),
		item("runtime", e.Runtime, answerWords),
		item("lists", e.Lists, answerWords),
		item("audit", e.Behind, func(b Behind) (bool, string) {
			return b == Behind{}, fmt.Sprintf("%d statuses not in the API, %d containers not noticed", b.APIBehindKubelet, b.KubeletBehindRuntime)
		}),
		item("apiserver", e.APIServer, answerWords),
		item("writes", e.Writes, answerWords),
		item("requests", e.Requests, func(r Requests) (bool, string) {
			text := fmt.Sprintf("%d of the kubelet's writes were accepted, %d refused", r.Accepted, r.Refused)
			if r.Codes != "" {
				text += " (" + r.Codes + ")"
			}
			return r.Refused == 0 || r.Accepted > 0, text
		}),
		item("disk", e.Disk, diskWords),
		item("certificate", e.Certificate, func(expires time.Time) (bool, string) {
			if now.After(expires) {
				return false, "expired at " + expires.UTC().Format(time.RFC3339)
			}
			return true, "expires at " + expires.UTC().Format(time.RFC3339)
		}),
		item("shutdown", e.ShuttingDown, func(down bool) (bool, string) {
			if down {
				return false, "the machine shuts down"
			}
			return true, "the machine does not shut down"
		}),
	)
}

func item[T any](name string, f Fact[T], words func(T) (bool, string)) Item {
	i := Item{Name: name, At: f.At}
	if !f.Known {
		i.Unknown, i.Text = true, f.Why
		return i
	}
	i.OK, i.Text = words(f.Value)
	return i
}

func answerWords(a Answer) (bool, string) {
	said := a.Text
	if said == "" && a.OK {
		said = "ok"
	}
	return a.OK, fmt.Sprintf("%s (%s)", said, text.Took(a.Took))
}

func processWords(p Process) (bool, string) {
	unit := ""
	if p.Unit != "" {
		unit = ", unit " + p.Unit
	}
	switch {
	case !p.Exists && p.Sure:
		return false, "gone" + ending(p) + unit
	case !p.Exists:
		return false, "none found" + unit
	case p.Zombie:
		return false, fmt.Sprintf("process %d is a zombie%s", p.PID, unit)
	case p.Stopped:
		return false, fmt.Sprintf("process %d is stopped%s", p.PID, unit)
	}
	return true, fmt.Sprintf("process %d runs since %s%s", p.PID, p.Started.UTC().Format(time.RFC3339), unit)
}

func leaseWords(l Lease, now time.Time) (bool, string) {
	if !l.Exists {
		return false, "the node has no lease"
	}
	duration := l.Duration
	if duration <= 0 {
		duration = leaseDuration
	}
	age := now.Sub(l.Renewed)
	return age <= duration, "renewed " + text.Took(age) + " ago, counts for " + text.Took(duration)
}

func plegWords(p PLEG, now time.Time) (bool, string) {
	if p.LastSeen.IsZero() {
		return true, "a relist takes " + text.Took(p.Relist)
	}
	age := now.Sub(p.LastSeen)
	return age <= max(p.Bound, plegBound) && p.Relist <= relistBound, fmt.Sprintf("a relist takes %s, the last one began %s ago", text.Took(p.Relist), text.Took(age))
}

func diskWords(d Disk) (bool, string) {
	text := fmt.Sprintf("%s of %s and %d inodes are free", text.Bytes(d.Free), text.Bytes(d.Total), d.InodesFree)
	if d.ReadOnly {
		text += ", read-only"
	}
	if d.Err != "" {
		text += ", a write failed: " + d.Err
	}
	return !d.Full(), text
}
