package nodecondition

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlanOfConditions(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(d)) }
	shown := v1.NodeCondition{Type: "statusd/Flap", Status: v1.ConditionTrue, Reason: "Flap", Message: "it flaps",
		LastHeartbeatTime: at(-time.Minute), LastTransitionTime: at(-time.Hour)}
	old, ahead, reworded, turned, second := shown, shown, shown, shown, shown
	old.LastHeartbeatTime = at(-DefaultHeartbeat)
	ahead.LastHeartbeatTime = at(time.Hour)
	reworded.Message = "it flapped"
	turned.Status = v1.ConditionFalse
	second.Type = "statusd/Second"
	foreign := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue}
	type conditions = map[v1.NodeConditionType]*v1.NodeCondition
	wanted := conditions{"statusd/Flap": &shown}
	over := conditions{"statusd/Flap": nil}
	deletion := `[{"$patch":"delete","type":"statusd/Flap"}]`
	written := func(since time.Duration) string {
		c := shown
		c.LastHeartbeatTime, c.LastTransitionTime = at(0), at(since)
		text, _ := json.Marshal([]v1.NodeCondition{c})
		return string(text)
	}
	for _, test := range []struct {
		name   string
		want   conditions
		have   []v1.NodeCondition
		prefix string
		patch  string
	}{
		{"it is not there", wanted, []v1.NodeCondition{foreign}, "", written(0)},
		{"it is there", wanted, []v1.NodeCondition{foreign, shown}, "statusd/", "null"},
		{"its heartbeat is old", wanted, []v1.NodeCondition{foreign, old}, "", written(-time.Hour)},
		{"its heartbeat is ahead", wanted, []v1.NodeCondition{foreign, ahead}, "", written(-time.Hour)},
		{"its message is another", wanted, []v1.NodeCondition{foreign, reworded}, "", written(-time.Hour)},
		{"its status is another", wanted, []v1.NodeCondition{foreign, turned}, "", written(0)},
		{"it is over", over, []v1.NodeCondition{foreign, shown}, "", deletion},
		{"it is over and not there", over, []v1.NodeCondition{foreign}, "statusd/", "null"},
		{"one from before, which may be set yet", nil, []v1.NodeCondition{foreign, shown}, "", "null"},
		{"one from before", nil, []v1.NodeCondition{foreign, shown}, "statusd/", deletion},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := goal{conditions: test.want, heartbeat: DefaultHeartbeat}
			if test.prefix != "" {
				g.prefixes = []string{test.prefix}
			}
			got, err := json.Marshal(g.plan(test.have, now))
			if err != nil || string(got) != test.patch {
				t.Errorf("got %s, %v; want %s", got, err, test.patch)
			}
		})
	}
	both := goal{conditions: conditions{"statusd/Flap": &shown, "statusd/Second": &second}, heartbeat: DefaultHeartbeat}
	if changes := both.plan([]v1.NodeCondition{shown}, now); len(changes) != 2 {
		t.Errorf("with one that is new the heartbeat of the other is not written: %v", changes)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	if got := bounded("two\nlines\xff"); got != "two lines\uFFFD" {
		t.Errorf("got %q", got)
	}
	if got := bounded(strings.Repeat("ü", maxMessage)); len(got) > maxMessage || !strings.HasSuffix(got, "ü…") {
		t.Errorf("got %d bytes that end with %q", len(got), got[len(got)-8:])
	}
}
