package apifacts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/nodelease"
)

// maxEvents is how many events of a pod are read.
const maxEvents = 200

// Collect returns the facts about a pod. Only the pod is required: without the right to read events
// or leases the explanation is shorter. The error is the error of reading the pod.
func Collect(ctx context.Context, client kubernetes.Interface, namespace, name string, now time.Time) (explain.Facts, error) {
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return explain.Facts{}, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	return about(ctx, client, pod, now), nil
}

// about returns the facts about a pod that was read.
func about(ctx context.Context, client kubernetes.Interface, pod *v1.Pod, now time.Time) explain.Facts {
	happened := events(ctx, client, pod)
	f := explain.Facts{Now: now, Pod: pod, Warnings: FromEvents(happened, pod), Node: node(ctx, client, pod.Spec.NodeName, now), Containers: map[string]explain.Container{}}
	if pod.Spec.NodeName == "" {
		nodes := nodes(ctx, client)
		f.Claims, f.Absent, f.Taints, f.Closest = unbound(ctx, client, pod), absent(ctx, client, pod), untolerated(nodes, pod), closest(ctx, client, nodes, pod)
	}
	if f.Node.Silent.IsZero() && !f.Node.Gone { // whose kubelet would be asked
		logs(ctx, client, f)
	}
	for name, since := range pulling(happened, pod) {
		c := f.Containers[name]
		c.Pulling = since
		f.Containers[name] = c
	}
	return f
}

// logPatience is the timeout of a request to a node for a log.
const logPatience = 3 * time.Second

// logs adds the ends of the logs of failed runs; without the right to read them the explanation is shorter.
func logs(ctx context.Context, client kubernetes.Interface, f explain.Facts) {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	lines, bytes := int64(40), int64(explain.MaxLog)
	for _, c := range slices.Concat(f.Pod.Spec.InitContainers, f.Pod.Spec.Containers) {
		wanted, previous := f.FailedRun(c.Name)
		if !wanted {
			continue
		}
		data, err := client.CoreV1().Pods(f.Pod.Namespace).GetLogs(f.Pod.Name, &v1.PodLogOptions{Container: c.Name, Previous: previous, TailLines: &lines, LimitBytes: &bytes}).DoRaw(ctx)
		if err == nil {
			f.Containers[c.Name] = explain.Container{Log: &explain.Log{Container: c.Name, Previous: previous, Lines: explain.LogLines(data)}}
		}
	}
}

// events are those about a pod.
func events(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) []v1.Event {
	list, err := client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.uid": string(pod.UID)}.String(), Limit: maxEvents})
	if err != nil {
		return nil
	}
	return list.Items
}

// pulling are the containers whose images are being pulled, with since when.
func pulling(events []v1.Event, pod *v1.Pod) map[string]time.Time {
	newest, found := map[string]time.Time{}, map[string]time.Time{}
	for i := range events {
		e := &events[i]
		name := containerOf(e.InvolvedObject.FieldPath)
		if e.InvolvedObject.UID != pod.UID || name == "" || last(e).Before(newest[name]) || !slices.Contains([]string{"Pulling", "Pulled", "Failed", "BackOff", "Created", "Started"}, e.Reason) {
			continue
		}
		newest[name] = last(e)
		delete(found, name)
		if e.Reason == "Pulling" {
			found[name] = last(e)
		}
	}
	return found
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

// node reports since when a node is silent: since it renewed its lease last, if that is longer ago than the lease is valid, or
// since its last heartbeat, if the control plane has given it up.
func node(ctx context.Context, client kubernetes.Interface, name string, now time.Time) explain.Node {
	found := explain.Node{Name: name}
	if name == "" {
		return found
	}
	object, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		found.Gone = !leased(ctx, client, name, now, &found)
		return found
	case err == nil:
		for _, c := range object.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionUnknown {
				found.Silent = c.LastHeartbeatTime.Time
				if found.Silent.IsZero() { // the node has never reported
					found.Silent = object.CreationTimestamp.Time
				}
			}
			if c.Type == v1.NodeReady && c.Status == v1.ConditionFalse {
				found.NotReady = cmp.Or(c.Message, c.Reason, "it does not say why")
			}
		}
		reported := slices.ContainsFunc(object.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady })
		if !leased(ctx, client, name, now, &found) && !reported {
			found.Silent = object.CreationTimestamp.Time
		}
		return found
	}
	leased(ctx, client, name, now, &found)
	return found
}

// absent are the resource claims that a pod names and that do not exist.
func absent(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) (found []string) {
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName == nil {
			continue
		}
		if _, err := client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, *claim.ResourceClaimName, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			found = append(found, fmt.Sprintf("ResourceClaim %q", *claim.ResourceClaimName))
		}
	}
	return found
}

// maxNodes is how many nodes are read for their taints.
const maxNodes = 200

func nodes(ctx context.Context, client kubernetes.Interface) []v1.Node {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: maxNodes})
	if err != nil {
		return nil
	}
	return list.Items
}

// untolerated are the taints of nodes that keep a pod away, each once. The scheduler counts the nodes and does not name the taints.
func untolerated(nodes []v1.Node, pod *v1.Pod) (found []string) {
	for i := range nodes {
		for _, taint := range nodes[i].Spec.Taints {
			name := taint.Key + ":" + string(taint.Effect)
			if taint.Value != "" {
				name = taint.Key + "=" + taint.Value + ":" + string(taint.Effect)
			}
			if taint.Effect != v1.TaintEffectPreferNoSchedule && taint.Key != v1.TaintNodeUnschedulable && !tolerated(pod, taint) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found
}

func tolerated(pod *v1.Pod, taint v1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) && (t.Operator == v1.TolerationOpExists || t.Value == taint.Value)
	})
}

// unbound are the claims of a pod that are not bound to a volume, with the known reasons.
func unbound(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) (found []explain.Claim) {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, volume.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if err != nil || claim.Status.Phase == v1.ClaimBound {
			continue
		}
		one := explain.Claim{Name: claim.Name}
		if class := claim.Spec.StorageClassName; class != nil && *class != "" {
			one.Class = *class
			_, err := client.StorageV1().StorageClasses().Get(ctx, *class, metav1.GetOptions{})
			one.NoClass = apierrors.IsNotFound(err)
		}
		if list := warningsOf(ctx, client, pod.Namespace, claim.UID); len(list) > 0 && !one.NoClass {
			one.Message = list[len(list)-1].Message
			for _, w := range list { // an event that the volume is awaited explains less than the reason why it is missing
				if !slices.Contains(telling, w.Reason) {
					one.Message = w.Message
				}
			}
		}
		found = append(found, one)
	}
	return found
}

// leased reports whether a node has a lease, and notes when it was renewed last if it is not valid any more.
func leased(ctx context.Context, client kubernetes.Interface, name string, now time.Time, found *explain.Node) bool {
	lease, err := client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return false
	}
	if now.Sub(lease.Spec.RenewTime.Time) > nodelease.Term(lease) {
		found.Silent = lease.Spec.RenewTime.Time
	}
	return true
}
