package observer

import (
	"testing"
	"time"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/observe"
)

func TestWhatTheGuardGetsOfAnAudit(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	difference := func(kind observe.Kind, drift bool, minutes int) observe.Difference {
		return observe.Difference{Kind: kind, Drift: drift, Since: now.Add(-time.Duration(minutes) * time.Minute)}
	}
	r := observe.Report{
		At: now, Sides: map[observe.Side]observe.Answer{observe.SideAPI: {At: now}, observe.SideKubelet: {At: now}},
		Differences: []observe.Difference{
			difference(observe.APIBehindKubelet, true, 1), difference(observe.APIBehindKubelet, true, 5), difference(observe.APIBehindKubelet, false, 9),
			difference(observe.KubeletBehindRuntime, true, 3), difference(observe.ClockSkew, true, 60),
		},
	}
	want := guard.Behind{APIBehindKubelet: 2, APIBehindKubeletOldest: 5 * time.Minute, KubeletBehindRuntime: 1, KubeletBehindRuntimeOldest: 3 * time.Minute}
	if got := behind(r, now); !got.Known || got.Value != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	r.Sides[observe.SideKubelet] = observe.Answer{At: now, Err: "connection refused"}
	if got := behind(r, now); got.Known || got.Why != "the kubelet has not answered: connection refused" {
		t.Errorf("a kubelet that does not answer: %+v", got)
	}
}
