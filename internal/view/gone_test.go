package view_test

import (
	"testing"
	"time"

	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/view"
)

// A pod that is gone says who ended it.
func TestGonePod_SaysWhoEndedIt(t *testing.T) {
	evicted := history.Record{Kind: history.KindCondition, Subject: "DisruptionTarget", To: "True", Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"}
	deleted := history.Record{Kind: history.KindDeletion, To: "ending", Reason: "Deleted", Message: "it is deleted in the API"}
	for name, c := range map[string]struct {
		records []history.Record
		want    string
	}{
		"by a rule": {[]history.Record{{Kind: history.KindAction, Subject: "evict", To: "done", Reason: "EvictAnnoy"}, evicted, deleted},
			"Pod d/p is gone: alert rule EvictAnnoy evicted it."},
		"by an eviction": {[]history.Record{evicted, deleted}, "Pod d/p is gone: it was evicted through the API, as kubectl drain, an autoscaler or a descheduler do."},
		"by the scheduler": {[]history.Record{{Kind: history.KindCondition, Subject: "DisruptionTarget", To: "True", Reason: "PreemptionByScheduler"}, deleted},
			"Pod d/p is gone: the scheduler made room for a pod of higher priority."},
		"by a person": {[]history.Record{deleted, {Kind: history.KindDeletion, To: "gone"}}, "Pod d/p is gone: it is deleted in the API."},
		"after a failure": {[]history.Record{{Kind: history.KindContainer, Container: "app", To: "terminated", Message: "exit code 3: no such table"}, {Kind: history.KindPhase, To: "Failed"}, deleted},
			"Pod d/p is gone: it is deleted in the API · container app ended: exit code 3: no such table · it had failed."},
		"without a trace": {nil, "Pod d/p is gone."},
	} {
		at := time.Unix(1_700_000_000, 0)
		h := view.PodHistory{Ref: history.Ref{Namespace: "d", Name: "p"}, Gone: &at, Records: c.records}
		if got := view.GoneSummary(h).Why; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if d := view.GoneDetail(h); c.want != "Pod d/p is gone." && len(d.Explanation.Causes) == 0 {
			t.Errorf("%s: no cause", name)
		}
	}
}
