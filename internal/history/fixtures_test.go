package history

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func ref(name string) Ref { return Ref{UID: types.UID(name), Namespace: "shop", Name: name} }

// reporter reports the statuses of one pod, as the status manager does.
type reporter struct {
	store   *Store
	name    string
	status  *v1.PodStatus
	version uint64
	at      time.Time
}

func report(s *Store, name string) *reporter {
	return &reporter{store: s, name: name, at: time.Now()}
}

func (r *reporter) set(status *v1.PodStatus) {
	old := r.status
	if old == nil {
		old = &v1.PodStatus{Phase: v1.PodPending}
	}
	r.version++
	r.store.Changed(podstatus.Change{
		UID: types.UID(r.name), Namespace: "shop", Name: r.name, Old: old, New: status, First: r.status == nil,
		Version: r.version, At: r.at, By: "SetPodStatus",
	})
	r.status = status
}

func (r *reporter) accepted() { r.store.Accepted(types.UID(r.name), r.version, r.at) }

// flap changes the readiness of the pod so many times.
func (r *reporter) flap(n int) {
	for range n {
		r.set(started(r.name, r.version%2 == 0))
	}
}

// text puts records in lines: "Condition Ready: False → True".
func shown(records []Record) string {
	var b strings.Builder
	for _, r := range records {
		about := strings.TrimSpace(r.Subject + " " + r.Container)
		fmt.Fprintf(&b, "%s %s: %s → %s", r.Kind, about, r.From, r.To)
		for _, detail := range []string{r.Reason, r.Message} {
			if detail != "" {
				fmt.Fprintf(&b, " (%s)", detail)
			}
		}
		if r.Accepted != nil {
			b.WriteString(" accepted")
		}
		if r.Dropped > 0 {
			fmt.Fprintf(&b, " after %d dropped", r.Dropped)
		}
		b.WriteString("\n")
	}
	return b.String()
}
