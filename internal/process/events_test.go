package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var eventful = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1"},
	Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
}

// eventWorld is a sender of events over an API server in memory.
type eventWorld struct {
	*Events
	t   *testing.T
	api *fake.Clientset
	log *bytes.Buffer
}

func newEventWorld(t *testing.T) *eventWorld {
	w := &eventWorld{t: t, api: fake.NewClientset(), log: &bytes.Buffer{}}
	w.Events = NewEvents("n1", w.api, slog.New(slog.NewTextHandler(w.log, nil)))
	return w
}

// fail has the next n writes of events fail; all if n is negative.
func (w *eventWorld) fail(n int, err error) {
	w.api.PrependReactor("*", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetVerb() == "list" || n == 0 {
			return false, nil, nil
		}
		n--
		return true, nil, err
	})
}

// deliver sends what waits, for as long as it takes in virtual time.
func (w *eventWorld) deliver() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	time.Sleep(time.Hour)
	cancel()
	if err := <-done; err != nil {
		w.t.Error(err)
	}
}

func (w *eventWorld) stored() []v1.Event {
	w.t.Helper()
	list, err := w.api.CoreV1().Events("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *eventWorld) wantCount(result string, want float64) {
	w.t.Helper()
	if got := testutil.ToFloat64(w.results.WithLabelValues(result)); got != want {
		w.t.Errorf("%v events are counted as %s, want %v", got, result, want)
	}
}

func TestEvents_NameReporterAndObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEventWorld(t)
		w.Event(eventful, "main", v1.EventTypeNormal, "Started", "Container started")
		w.NodeEvent(v1.EventTypeNormal, "NodeReady", "Node n1 status is now: NodeReady")
		w.deliver()
		got := map[string]v1.Event{}
		for _, e := range w.stored() {
			if e.ReportingController != "statusd" || e.ReportingInstance != "n1" || e.Source != (v1.EventSource{Component: "statusd", Host: "n1"}) {
				t.Errorf("%s is reported by %q, %q, %v", e.Reason, e.ReportingController, e.ReportingInstance, e.Source)
			}
			got[e.Reason] = e
		}
		if about := got["Started"].InvolvedObject; about.UID != "u1" || about.FieldPath != "spec.containers{main}" {
			t.Errorf("the event of a container is about %+v", about)
		}
		if e := got["NodeReady"]; e.Namespace != "default" || e.InvolvedObject.Kind != "Node" || e.InvolvedObject.UID != "n1" {
			t.Errorf("the event of the node is in namespace %q about %+v", e.Namespace, e.InvolvedObject)
		}
		w.wantCount(eventSent, 2)
	})
}

func TestRepeatedEventsAreCountedAndFloodsAreHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEventWorld(t)
		for range 5 {
			w.Event(eventful, "main", v1.EventTypeWarning, "Unhealthy", "Readiness probe failed: connection refused")
		}
		w.deliver()
		if got := w.stored(); len(got) != 1 || got[0].Count != 5 {
			t.Errorf("got %v, want one event with count 5", got)
		}
		w.wantCount(eventCounted, 4)

		other := eventful.DeepCopy()
		other.UID, other.Name = "u2", "noisy"
		for i := range 1000 {
			w.Event(other, "main", v1.EventTypeWarning, "Unhealthy", fmt.Sprint("answer ", i))
		}
		w.deliver()
		if got := len(w.stored()); got > 1+25 {
			t.Errorf("%d events are stored of a pod with 1000, want at most 25", got-1)
		}
		w.wantCount(eventSuppressed, 1000-25)
	})
}

func TestEvents_ServerDown_WaitBoundedWithoutBlocking(t *testing.T) {
	w := newEventWorld(t)
	for range eventsWaiting + 10 { // nothing sends them
		w.Event(eventful, "", v1.EventTypeNormal, "Started", "")
	}
	w.wantCount(eventDropped, 10)
	if got := len(w.queue); got != eventsWaiting {
		t.Errorf("%d events wait, want %d", got, eventsWaiting)
	}
}

func TestEvents_ServerRefuses_LogsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEventWorld(t)
		w.fail(3, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "web", errors.New("no")))
		for i := range 4 {
			w.Event(eventful, "", v1.EventTypeNormal, fmt.Sprint("Reason", i), "")
		}
		begin := time.Now()
		w.deliver()
		w.wantCount(EventRefused, 3)
		w.wantCount(eventSent, 1)
		if got := strings.Count(w.log.String(), "event not stored"); got != 1 {
			t.Errorf("logged %d times, want once:\n%s", got, w.log)
		}
		if got := w.stored()[0].FirstTimestamp.Sub(begin); got != 0 {
			t.Errorf("a refused event has delayed the next by %v", got)
		}
	})
}

func TestEventsSurviveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEventWorld(t)
		w.fail(eventTries-1, errors.New("connection refused"))
		w.Event(eventful, "", v1.EventTypeNormal, "Started", "")
		at := time.Now()
		w.deliver()
		if got := w.stored(); len(got) != 1 || !got[0].FirstTimestamp.Time.Equal(at) {
			t.Errorf("got %v, want the event with the time at which it happened", got)
		}
		w.fail(eventTries, apierrors.NewServiceUnavailable("starting"))
		w.Event(eventful, "", v1.EventTypeNormal, "Killing", "")
		w.Event(eventful, "", v1.EventTypeNormal, "Started again", "")
		w.deliver()
		w.wantCount(eventFailed, 1)
		w.wantCount(eventSent, 2)
	})
}

// loseAnswers has the next n requests that store an event answered by nothing, though the event is stored.
func (w *eventWorld) loseAnswers(n int) {
	w.api.PrependReactor("create", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if n--; n < 0 {
			return false, nil, nil
		}
		create := a.(clienttesting.CreateAction)
		if err := w.api.Tracker().Create(create.GetResource(), create.GetObject(), create.GetNamespace()); err != nil {
			w.t.Error(err)
		}
		return true, nil, errors.New("connection reset by peer")
	})
}

func TestLostAnswer_EventIsCountedAsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEventWorld(t)
		w.loseAnswers(1)
		w.Event(eventful, "", v1.EventTypeNormal, "Started", "")
		w.Event(eventful, "", v1.EventTypeNormal, "Started", "")
		w.deliver()
		w.wantCount(EventRefused, 0)
		w.wantCount(eventSent, 1)
		w.wantCount(eventCounted, 1)
		if strings.Contains(w.log.String(), "event not stored") {
			t.Errorf("an event that is stored is logged as not stored:\n%s", w.log)
		}
		if got := w.stored(); len(got) != 1 || got[0].Count != 2 {
			t.Errorf("got %v, want one event that the second one is counted in", got)
		}
	})
}

// A flood of one kind must not keep another kind from the Node: the health of the kubelet and the lines of a log are
// events of the same object.
func TestFloodOfNodeEvents_LeavesOtherReasonsTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEventWorld(t)
		for i := range 100 {
			w.NodeEvent(v1.EventTypeWarning, "OOMKilling", fmt.Sprint("process ", i))
		}
		w.NodeEvent(v1.EventTypeWarning, "KubeletUnhealthy", "the process is gone")
		w.deliver()
		var reasons []string
		for _, e := range w.stored() {
			reasons = append(reasons, e.Reason)
		}
		if !slices.Contains(reasons, "KubeletUnhealthy") {
			t.Errorf("got events %v, want KubeletUnhealthy among them", reasons)
		}
	})
}

func TestMessagesOfEventsArePrintable(t *testing.T) {
	for name, c := range map[string]struct{ message, want string }{
		"plain":    {"Readiness probe failed: no\n\tat all", "Readiness probe failed: no\n\tat all"},
		"terminal": {"\x1b[31mred\x00\r\a", "?[31mred???"},
		"binary":   {"\xff\xfe\x80ok", "?ok"},
		"long":     {strings.Repeat("é", 5000), strings.Repeat("é", 510) + "…"},
	} {
		got := printable(c.message)
		if got != c.want || !utf8.ValidString(got) || len(got) > MaxEventMessage {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
