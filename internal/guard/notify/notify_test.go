package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/nodecondition"
)

func report(health guard.Health, reasons ...guard.Reason) guard.Report {
	return guard.Report{Verdict: guard.Verdict{Health: health, Reasons: reasons}}
}

var gone = guard.Reason{Code: guard.ProcessGone, Message: "the process is gone, exit code 0"}

// runs runs an output in virtual time.
func runs(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func find(node *v1.Node) *v1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == ConditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func TestTheConditionOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}
		client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{foreign}}})
		keeper := nodecondition.New(nodecondition.Options{Client: client, Node: "n1", Logger: slog.New(slog.DiscardHandler)})
		c := Condition{keeper.Owner(Terms)}
		stop := runs(t, keeper.Run)
		get := func() v1.NodeCondition {
			node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil || !slices.Contains(node.Status.Conditions, foreign) {
				t.Fatalf("the condition of the kubelet has changed: %+v (%v)", node, err)
			}
			if found := find(node); found != nil {
				return *found
			}
			return v1.NodeCondition{}
		}
		const step = 10*time.Minute - time.Second // no change at the moment of a heartbeat
		begin := time.Now()
		for _, s := range []struct {
			report         guard.Report
			status, reason string
			transition     time.Duration // after the begin
		}{
			{report(guard.Healthy), "True", "KubeletIsHealthy", 0},
			{report(guard.Degraded, guard.Reason{Code: guard.PLEGSlow}), "True", guard.PLEGSlow, 0},
			{report(guard.Unhealthy, gone), "False", guard.ProcessGone, 2 * step},
			{report(guard.Unknown), "Unknown", "TooLittleEvidence", 3 * step},
			{report(guard.Healthy), "True", "KubeletIsHealthy", 4 * step},
		} {
			c.Notify(guard.Notice{Report: s.report})
			synctest.Wait()
			got := get()
			if string(got.Status) != s.status || got.Reason != s.reason || got.LastTransitionTime.Sub(begin) != s.transition {
				t.Errorf("%s: got %+v, want %s, %s, since %v", s.report.Health, got, s.status, s.reason, s.transition)
			}
			time.Sleep(step)
		}
		if age := time.Since(get().LastHeartbeatTime.Time); age > 5*time.Minute {
			t.Errorf("the last heartbeat is %v old", age)
		}
		writes := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" {
				writes++
			}
		}
		if most := 5 + 50/5; writes > most { // each is sent to every watcher of Nodes
			t.Errorf("%d writes of the Node in 50 minutes with 5 changes, want at most %d", writes, most)
		}
		stop()
		if left := get(); left.Type != "" {
			t.Errorf("after the end the condition is still there: %+v", left)
		}
	})
}

// An API server that is down gets the newest condition once it is back, not those between.
func TestTheConditionAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		var down atomic.Bool
		patches := 0
		client.PrependReactor("*", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if down.Load() {
				return true, nil, errors.New("connection refused")
			}
			if patch, is := a.(clienttesting.PatchAction); is && len(patch.GetPatch()) > len("{}") { // an empty one reads
				patches++
			}
			return false, nil, nil
		})
		keeper := nodecondition.New(nodecondition.Options{Client: client, Node: "n1", Logger: slog.New(slog.DiscardHandler)})
		c := Condition{keeper.Owner(Terms)}
		defer runs(t, keeper.Run)()
		down.Store(true)
		for range 10 {
			c.Notify(guard.Notice{Report: report(guard.Unhealthy, gone)})
			time.Sleep(time.Minute)
			c.Notify(guard.Notice{Report: report(guard.Healthy)})
			time.Sleep(time.Minute)
		}
		down.Store(false)
		time.Sleep(20 * time.Second)
		node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil || find(node) == nil || find(node).Status != v1.ConditionTrue || patches != 1 {
			t.Errorf("%d patches, %+v (%v)", patches, node.Status.Conditions, err)
		}
	})
}

func TestEventsOfTheNode(t *testing.T) {
	var got []string
	e := Events{Record: func(eventType, reason, message string) { got = append(got, eventType+" "+reason+" "+message) }}
	e.Notify(guard.Notice{Kind: guard.NoticeReport, Message: "nothing new"})
	e.Notify(guard.Notice{Kind: guard.NoticeUnhealthy, Message: "gone"})
	e.Notify(guard.Notice{Kind: guard.NoticeRestarted, Message: "restarted"})
	e.Notify(guard.Notice{Kind: guard.NoticeHealthy, Message: "back"})
	if want := []string{"Warning KubeletUnhealthy gone", "Warning KubeletRestarted restarted", "Normal KubeletHealthy back"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A node that shuts down says so as a kubelet does, as soon as the API server takes it.
func TestNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}})
		failures := 2
		client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, errors.New("connection refused")
		})
		if err := NotReady(t.Context(), client, "n1"); err != nil {
			t.Fatal(err)
		}
		node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if c := node.Status.Conditions; err != nil || len(c) != 1 || c[0].Status != v1.ConditionFalse || c[0].Message != "node is shutting down" {
			t.Errorf("got %+v (%v)", c, err)
		}
		failures = 1000
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := NotReady(ctx, client, "n1"); err == nil {
			t.Error("it was written though it was not")
		}
	})
}
