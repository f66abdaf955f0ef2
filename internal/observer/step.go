package observer

import (
	"cmp"
	"slices"

	"github.com/statusd/statusd/internal/audit"
)

// identity distinguishes differences.
type identity struct {
	kind      audit.Kind
	pod       audit.Ref
	container string
	subject   string
}

func identityOf(d *audit.Difference) identity {
	if d.Writer != "" {
		return identity{d.Kind, d.Pod, "", d.Writer} // the fields that it writes may grow
	}
	return identity{d.Kind, d.Pod, d.Container, d.Subject}
}

// stage is how far a difference has come.
type stage string

// The stages, which are also the words of the history.
const (
	appeared stage = "difference" // it may be news on its way
	drifted  stage = "drift"
	resolved stage = "resolved"
)

// step is what became of a difference between two audits.
type step struct {
	audit.Difference
	from, to stage
}

// steps are what differs between two audits: the differences that are new, have become drift or are over.
// Pure function. Both lists have each difference once.
func steps(before, after []audit.Difference) []step {
	known := make(map[identity]*audit.Difference, len(before))
	for i := range before {
		known[identityOf(&before[i])] = &before[i]
	}
	var list []step
	for i := range after {
		d := &after[i]
		id := identityOf(d)
		old := known[id]
		delete(known, id)
		switch {
		case old == nil:
			list = append(list, step{*d, "", stageOf(d)})
		case stageOf(old) != stageOf(d):
			list = append(list, step{*d, stageOf(old), stageOf(d)})
		}
	}
	gone := len(list)
	for _, d := range known {
		list = append(list, step{*d, stageOf(d), resolved})
	}
	slices.SortFunc(list[gone:], func(a, b step) int { return compare(&a.Difference, &b.Difference) })
	return list
}

func stageOf(d *audit.Difference) stage {
	if d.Drift {
		return drifted
	}
	return appeared
}

func compare(a, b *audit.Difference) int {
	return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Pod.UID, b.Pod.UID),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Subject, b.Subject))
}
