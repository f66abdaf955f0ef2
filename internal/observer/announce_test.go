package observer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
)

func difference(kind audit.Kind, pod string, drift bool) audit.Difference {
	return audit.Difference{Kind: kind, Pod: audit.Ref{UID: types.UID("uid-" + pod), Namespace: "shop", Name: pod}, Drift: drift, Message: "it is not so", Do: "look"}
}

func TestStepsAreWhatDiffersBetweenTwoAudits(t *testing.T) {
	stays := difference(audit.ForeignWriter, "a", true)
	stays.Writer, stays.Subject = "bad", "Ready"
	grows := stays
	grows.Subject = "Ready,phase"
	before := []audit.Difference{stays, difference(audit.APIBehindKubelet, "b", false), difference(audit.LeaseStale, "", true), difference(audit.StuckTerminating, "d", false)}
	after := []audit.Difference{grows, difference(audit.APIBehindKubelet, "b", true), difference(audit.StuckTerminating, "c", false)}
	var got []string
	for _, s := range steps(before, after) {
		got = append(got, fmt.Sprintf("%s %s: %s>%s", s.Kind, s.Pod.Name, s.from, s.to))
	}
	want := []string{"APIBehindKubelet b: difference>drift", "StuckTerminating c: >difference", "LeaseStale : drift>resolved", "StuckTerminating d: difference>resolved"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestCondition_OfAnAudit_HasItsResult(t *testing.T) {
	answer := audit.Answer{At: time.Unix(1, 0)}
	all := map[audit.Side]audit.Answer{audit.SideAPI: answer, audit.SideKubelet: answer, audit.SideRuntime: answer, audit.SideMachine: answer}
	silent := map[audit.Side]audit.Answer{audit.SideAPI: answer, audit.SideKubelet: {Err: "connection refused"}}
	cases := []struct {
		name   string
		report audit.Report
		want   v1.NodeCondition
	}{
		{"all is well", audit.Report{Sides: all, Differences: []audit.Difference{difference(audit.APIBehindKubelet, "a", false)}},
			v1.NodeCondition{Status: v1.ConditionTrue, Reason: "NoDrift", Message: "what the API says about the pods of this node is true"}},
		{"drift", audit.Report{Sides: silent, Differences: []audit.Difference{difference(audit.StuckTerminating, "a", true), difference(audit.LeaseStale, "a", true)}},
			v1.NodeCondition{Status: v1.ConditionFalse, Reason: "Drift", Message: "2 differences that last, of 1 of 7 pods; the first: it is not so"}},
		{"a side is silent", audit.Report{Sides: silent},
			v1.NodeCondition{Status: v1.ConditionUnknown, Reason: "SideSilent", Message: "the kubelet does not answer: connection refused"}},
	}
	for _, c := range cases {
		c.want.Type = ConditionType
		if got := truthful(&c.report, 7); got != c.want {
			t.Errorf("%s: got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// The condition follows what is found, has the time of its transition, and is gone after a clean end.
func TestTheConditionOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("web")
		o := w.observer(func(c *Config) { c.Outputs.Conditions = true })
		stop := w.run(o)
		time.Sleep(3 * time.Minute)
		first := w.condition()
		if first == nil || first.Status != v1.ConditionTrue {
			t.Fatalf("the condition is %+v, want True", first)
		}
		w.freeze(true)
		w.kill("web")
		time.Sleep(time.Minute)
		second := w.condition()
		if second.Status != v1.ConditionFalse || !second.LastTransitionTime.After(first.LastTransitionTime.Time) {
			t.Errorf("the condition is %+v, want False with a later transition", second)
		}
		w.client.ClearActions()
		time.Sleep(10 * time.Minute)
		if n := len(w.client.Actions()); n > 12 {
			t.Errorf("%d requests in 10 minutes in which nothing has changed", n)
		}
		stop()
		if c := w.condition(); c != nil {
			t.Errorf("after the end there is %+v", c)
		}
	})
}

// A condition that an observer has left which was killed keeps the time of its transition.
func TestTheConditionAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("web")
		since := metav1.NewTime(time.Now().Add(-time.Hour))
		node, err := w.client.CoreV1().Nodes().Get(t.Context(), testNode, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: ConditionType, Status: v1.ConditionTrue, LastTransitionTime: since})
		if _, err := w.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		stop := w.run(w.observer(func(c *Config) { c.Outputs.Conditions = true }))
		time.Sleep(3 * time.Minute)
		if c := w.condition(); c == nil || c.Status != v1.ConditionTrue || !c.LastTransitionTime.Equal(&since) {
			t.Errorf("the condition is %+v, want True since %v", c, since)
		}
		stop()
	})
}

func (w *world) condition() *v1.NodeCondition {
	w.t.Helper()
	node, err := w.client.CoreV1().Nodes().Get(w.t.Context(), testNode, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == ConditionType {
			return &c
		}
	}
	return nil
}

// Drift makes an event of the pod, with its UID; drift of many pods at once makes one of the Node.
func TestEventsOfDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 20 {
			w.add(fmt.Sprint("web-", i))
		}
		o := w.observer(func(c *Config) { c.Outputs.Events = true })
		stop := w.run(o)
		time.Sleep(3 * time.Minute)
		w.kill("web-0") // and the kubelet does not notice
		time.Sleep(time.Minute)
		one := w.events()
		if len(one) != 1 || one[0].Reason != "StatusDriftDetected" || one[0].InvolvedObject.UID != "uid-web-0" || one[0].Type != v1.EventTypeWarning {
			t.Errorf("the events are %+v", one)
		}
		for i := 1; i < 20; i++ {
			w.kill(fmt.Sprint("web-", i))
		}
		time.Sleep(time.Minute)
		stop()
		many := slices.DeleteFunc(w.events(), func(e v1.Event) bool { return e.InvolvedObject.Kind != "Node" })
		if len(many) != 1 || !strings.Contains(many[0].Message, "19 pods: shop/web-1, ") || len(w.events()) != 2 {
			t.Errorf("the events are %+v, want one more, of the Node", w.events())
		}
	})
}
