package apifacts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/explain"
)

const (
	// maxEvents is how many events of a pod are read.
	maxEvents = 200
	// leaseDuration is how long a lease is valid that does not say so.
	leaseDuration = 40 * time.Second
)

// Collect returns the facts about a pod. Only the pod is required: a user who may not read
// events or leases gets a shorter explanation. The error is that of reading the pod.
func Collect(ctx context.Context, client kubernetes.Interface, namespace, name string, now time.Time) (explain.Facts, error) {
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return explain.Facts{}, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	return explain.Facts{Now: now, Pod: pod, Warnings: warnings(ctx, client, pod), Node: node(ctx, client, pod.Spec.NodeName, now)}, nil
}

func warnings(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) []explain.Warning {
	list, err := client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": string(pod.UID), "type": v1.EventTypeWarning}.String(),
		Limit:         maxEvents,
	})
	if err != nil {
		return nil
	}
	return FromEvents(list.Items, pod)
}

// FromEvents returns the warnings among events that are about the pod, the newest last.
func FromEvents(events []v1.Event, pod *v1.Pod) []explain.Warning {
	var found []explain.Warning
	for i := range events {
		e := &events[i]
		if e.Type != v1.EventTypeWarning || e.InvolvedObject.UID != pod.UID {
			continue
		}
		found = append(found, explain.Warning{
			Reason: e.Reason, Message: e.Message, Container: containerOf(e.InvolvedObject.FieldPath), Count: count(e), Last: last(e),
		})
	}
	slices.SortStableFunc(found, func(a, b explain.Warning) int {
		return cmp.Or(a.Last.Compare(b.Last), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return found
}

// containerOf returns the container that a field path such as spec.containers{web} names.
func containerOf(path string) string {
	_, name, ok := strings.Cut(path, "{")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, "}")
}

func count(e *v1.Event) int {
	if e.Series != nil {
		return int(e.Series.Count)
	}
	return max(1, int(e.Count))
}

// last is when an event occurred last: there are three fields for it.
func last(e *v1.Event) time.Time {
	at := e.EventTime.Time
	if e.LastTimestamp.After(at) {
		at = e.LastTimestamp.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// node reports a node as unreachable from the moment at which it renewed its lease last, if
// that is longer ago than the lease is valid.
func node(ctx context.Context, client kubernetes.Interface, name string, now time.Time) explain.Node {
	found := explain.Node{Name: name}
	if name == "" {
		return found
	}
	lease, err := client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return found
	}
	valid := leaseDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		valid = time.Duration(*seconds) * time.Second
	}
	if now.Sub(lease.Spec.RenewTime.Time) > valid {
		found.Unreachable = lease.Spec.RenewTime.Time
	}
	return found
}
