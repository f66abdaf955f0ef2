package apifacts_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/apifacts"
)

var now = time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)

func pod() *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}, Spec: v1.PodSpec{NodeName: "n1"}}
}

func event(name string, uid types.UID, kind, path string, last time.Time) *v1.Event {
	return &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "ns", Name: name},
		InvolvedObject: v1.ObjectReference{UID: uid, FieldPath: path},
		Type:           kind, Reason: name, Message: "m", LastTimestamp: metav1.Time{Time: last},
	}
}

func TestFromEvents(t *testing.T) {
	own := event("late", "1", v1.EventTypeWarning, "spec.containers{db}", now)
	own.Count = 3
	early := event("early", "1", v1.EventTypeWarning, "", now.Add(-time.Minute))
	series := event("series", "1", v1.EventTypeWarning, "", time.Time{})
	series.EventTime = metav1.NewMicroTime(now.Add(-time.Hour))
	series.Series = &v1.EventSeries{Count: 9, LastObservedTime: metav1.NewMicroTime(now.Add(time.Second))}
	normal := event("normal", "1", v1.EventTypeNormal, "", now)
	other := event("other", "2", v1.EventTypeWarning, "", now) // an earlier pod of this name

	got := apifacts.FromEvents([]v1.Event{*own, *series, *normal, *other, *early}, pod())
	want := []explain.Warning{
		{Reason: "early", Message: "m", Count: 1, Last: now.Add(-time.Minute)},
		{Reason: "late", Message: "m", Container: "db", Count: 3, Last: now},
		{Reason: "series", Message: "m", Count: 9, Last: now.Add(time.Second)},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestCollectFindsASilentNode(t *testing.T) {
	for name, c := range map[string]struct {
		renewed time.Duration
		want    bool
	}{"renewed": {10 * time.Second, false}, "not renewed": {41 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			renewed := metav1.NewMicroTime(now.Add(-c.renewed))
			lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n1"}, Spec: coordination.LeaseSpec{RenewTime: &renewed}}
			facts, err := apifacts.Collect(t.Context(), fake.NewClientset(pod(), lease), "ns", "web", now)
			if err != nil || facts.Node.Silent.IsZero() == c.want {
				t.Errorf("got %v (%v), want unreachable: %v", facts.Node.Silent, err, c.want)
			}
		})
	}
}

// A user who may read pods only gets an explanation all the same.
func TestCollectNeedsOnlyThePod(t *testing.T) {
	client := fake.NewClientset(pod())
	forbidden := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1.Resource("any"), "", errors.New("no"))
	}
	client.PrependReactor("list", "events", forbidden)
	client.PrependReactor("get", "leases", forbidden)
	facts, err := apifacts.Collect(t.Context(), client, "ns", "web", now)
	if err != nil || facts.Pod.Name != "web" || facts.Warnings != nil || !facts.Node.Silent.IsZero() {
		t.Errorf("got %+v, %v", facts, err)
	}
	if _, err := apifacts.Collect(t.Context(), client, "ns", "other", now); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that does not exist: got %v", err)
	}
}
