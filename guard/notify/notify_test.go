package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/statusd/statusd/guard"
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
		c := NewCondition(client, "n1", nil)
		stop := runs(t, c.Run)
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
		begin := time.Now()
		for _, s := range []struct {
			report         guard.Report
			status, reason string
			transition     time.Duration // after the begin
		}{
			{report(guard.Healthy), "True", "KubeletIsHealthy", 0},
			{report(guard.Degraded, guard.Reason{Code: guard.PLEGSlow}), "True", guard.PLEGSlow, 0},
			{report(guard.Unhealthy, gone), "False", guard.ProcessGone, 20 * time.Minute},
			{report(guard.Unknown), "Unknown", "TooLittleEvidence", 30 * time.Minute},
			{report(guard.Healthy), "True", "KubeletIsHealthy", 40 * time.Minute},
		} {
			c.Notify(guard.Notice{Report: s.report})
			synctest.Wait()
			got := get()
			if string(got.Status) != s.status || got.Reason != s.reason || got.LastTransitionTime.Sub(begin) != s.transition {
				t.Errorf("%s: got %+v, want %s, %s, since %v", s.report.Health, got, s.status, s.reason, s.transition)
			}
			time.Sleep(10 * time.Minute)
		}
		if age := time.Since(get().LastHeartbeatTime.Time); age > heartbeat {
			t.Errorf("the last heartbeat is %v old", age)
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
		c := NewCondition(client, "n1", nil)
		defer runs(t, c.Run)()
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
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		failures := 3
		client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			if failures--; failures >= 0 {
				return true, nil, apierrors.NewServiceUnavailable("starting")
			}
			return false, nil, nil
		})
		e := NewEvents(client, "n1", nil)
		defer runs(t, e.Run)()
		e.Notify(guard.Notice{Kind: guard.NoticeReport, At: time.Now()})
		e.Notify(guard.Notice{Kind: guard.NoticeUnhealthy, At: time.Now(), Message: strings.Repeat("ü", 5000)})
		time.Sleep(time.Minute)
		e.Notify(guard.Notice{Kind: guard.NoticeHealthy, At: time.Now()})
		synctest.Wait()
		list, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 {
			t.Fatalf("got %d events (%v), want 2", len(list.Items), err)
		}
		first, second := list.Items[0], list.Items[1]
		if first.Reason != "KubeletUnhealthy" || first.Type != "Warning" || first.InvolvedObject.Kind != "Node" || len(first.Message) > maxMessage || second.Reason != "KubeletHealthy" || second.Type != "Normal" {
			t.Errorf("got %+v and %+v", first, second)
		}
	})
}

// A server that never takes them costs a bounded queue.
func TestEventsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		asked := 0
		client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			return true, nil, apierrors.NewForbidden(v1.Resource("events"), "", errors.New("no"))
		})
		e := NewEvents(client, "n1", nil)
		for range 10 * waiting {
			e.Notify(guard.Notice{Kind: guard.NoticeUnhealthy, At: time.Now()})
		}
		defer runs(t, e.Run)()
		synctest.Wait()
		if asked != waiting || e.dropped.Load() != 9*waiting {
			t.Errorf("asked %d times, dropped %d", asked, e.dropped.Load())
		}
	})
}

func TestTheWebhook(t *testing.T) {
	got := make(chan Message, 10)
	var answers atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers.Add(1) == 1 { // it is tried again
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var m Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %v", err)
		}
		got <- m
		w.WriteHeader(http.StatusBadRequest) // which is not
	}))
	defer server.Close()
	w, err := NewWebhook(WebhookOptions{URL: server.URL, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	defer runs(t, w.Run)()
	r := report(guard.Unhealthy, gone)
	r.Withheld = "maintenance"
	w.Notify(guard.Notice{Kind: guard.NoticeReport})
	w.Notify(guard.Notice{Kind: guard.NoticeUnhealthy, Message: "first", Report: r})
	w.Notify(guard.Notice{Kind: guard.NoticeRestarted, Message: "second", Report: r})
	first, second := <-got, <-got
	if first.Node != "n1" || first.Kind != guard.NoticeUnhealthy || first.Health != guard.Unhealthy || first.Reasons[0].Code != guard.ProcessGone || first.Withheld != "maintenance" || second.Message != "second" {
		t.Errorf("got %+v and %+v", first, second)
	}
}

func TestAWebhookThatHangsHoldsNothingUp(t *testing.T) {
	w, err := NewWebhook(WebhookOptions{URL: "http://127.0.0.1:1/", Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 * waiting {
		w.Notify(guard.Notice{Kind: guard.NoticeUnhealthy})
	}
	if w.dropped.Load() != 9*waiting {
		t.Errorf("dropped %d", w.dropped.Load())
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
