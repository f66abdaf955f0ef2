package kubeoutputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/nodecondition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func notification(rule, pod string, state alert.State) engine.Notification {
	return engine.Notification{Alert: alert.Alert{
		Fingerprint: rule + "/" + pod, Rule: rule, Severity: "critical", State: state, Namespace: "default", Pod: pod, UID: "u-1",
		Annotations: map[string]string{"summary": "it\nis so", Annotation: rule},
	}, Node: "n1"}
}

func TestEventsOfAlerts(t *testing.T) {
	var got []string
	events := NewEvents("n1", func(about v1.ObjectReference, eventType, reason, message string) {
		got = append(got, fmt.Sprintf("%s %s %s %s %s %s %s", about.Kind, about.Name, about.UID, about.FieldPath, eventType, reason, message))
	})
	done := 0
	notify := func(n engine.Notification) {
		n.Done = func() { done++ }
		events.Notify(n)
	}
	container := notification("Crash", "web", alert.Firing)
	container.Alert.Container = "c"
	node := notification("Flap", "", alert.Resolved)
	again := notification("Crash", "web", alert.Firing)
	again.Again = true
	notify(container)
	notify(again)
	notify(node)
	want := []string{
		"Pod web u-1 spec.containers{c} Warning AlertFiring Crash (critical): it is so",
		"Node n1 n1  Normal AlertResolved Flap (critical): it is so",
	}
	if !slices.Equal(got, want) || done != 3 {
		t.Errorf("got %q, done %d; want %q and 3", got, done, want)
	}
}

func TestLogOfAlerts(t *testing.T) {
	var out bytes.Buffer
	log := NewLog(slog.New(slog.NewTextHandler(&out, nil)))
	log.Notify(notification("Crash", "web", alert.Firing))
	log.Notify(notification("Crash", "web", alert.Resolved))
	silenced := notification("Crash", "web", alert.Firing)
	silenced.Alert.Silenced = "s"
	log.Notify(silenced)
	if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, `msg="alert firing" rule=Crash`) || !strings.Contains(text, `msg="alert resolved"`) {
		t.Errorf("logged %s", text)
	}
}

func TestTheMessageOfAConditionIsBounded(t *testing.T) {
	var alerts []alert.Alert
	for i := range 500 {
		alerts = append(alerts, notification("Flap", fmt.Sprint("pod-", i), alert.Firing).Alert)
	}
	if text := message(alerts); len(text) > maxMessage || !strings.Contains(text, " more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestConditionsFollowAlertsThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n"}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{
			{Type: v1.NodeReady, Status: v1.ConditionTrue}, {Type: "statusd/Old", Status: v1.ConditionTrue}}}})
		var down atomic.Bool
		var done atomic.Int32
		down.Store(true)
		client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("down")
		})
		shown := func() (list []string) {
			node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range node.Status.Conditions {
				list = append(list, string(c.Type))
			}
			slices.Sort(list)
			return list
		}
		keeper := nodecondition.New(nodecondition.Options{Client: client, Node: "n1", Logger: slog.New(slog.DiscardHandler)})
		conditions := NewConditions(keeper)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- keeper.Run(ctx) }()
		n := notification("Flap", "", alert.Firing)
		n.Done = func() { done.Add(1) }
		conditions.Notify(n)
		time.Sleep(5 * time.Second)
		if done.Load() != 0 {
			t.Error("done before it was written")
		}
		down.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := shown(); !slices.Equal(got, []string{"Ready", "statusd/Flap"}) || done.Load() != 1 {
			t.Errorf("conditions %q, done %d; want Ready and statusd/Flap, and 1", got, done.Load())
		}
		conditions.Notify(notification("Flap", "", alert.Resolved))
		synctest.Wait()
		if got := shown(); !slices.Equal(got, []string{"Ready"}) {
			t.Errorf("conditions %q after the end, want Ready", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
