package apifacts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/podstatus"
)

// maxPods is how many pods of a workload are explained.
const maxPods = 20

// kinds are the workloads by the names under which people know them.
var kinds = map[string]string{
	"deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment",
	"replicaset": "ReplicaSet", "replicasets": "ReplicaSet", "rs": "ReplicaSet",
	"statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet",
	"daemonset": "DaemonSet", "daemonsets": "DaemonSet", "ds": "DaemonSet",
	"job": "Job", "jobs": "Job",
	"cronjob": "CronJob", "cronjobs": "CronJob", "cj": "CronJob",
	"pod": "Pod", "pods": "Pod", "po": "Pod",
}

// Kind returns the kind that a word such as deploy names, and whether it names one.
func Kind(word string) (string, bool) {
	kind, ok := kinds[word]
	return kind, ok
}

// Kinds are the kinds of workloads, the most common first.
var Kinds = []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "ReplicaSet"}

// workload is an object that makes pods, with its selector.
type workload struct {
	explain.Workload
	uid      types.UID
	updated  int // pods of the newest version of a Deployment
	selector *metav1.LabelSelector
}

// Workload returns the facts about an object that makes pods. The error is that of reading the object or its pods.
func Workload(ctx context.Context, client kubernetes.Interface, kind, namespace, name string, now time.Time) (explain.Workload, error) {
	w, err := read(ctx, client, kind, namespace, name)
	if err != nil {
		return explain.Workload{}, fmt.Errorf("%s %s/%s: %w", kind, namespace, name, err)
	}
	w.Now, w.Kind, w.Namespace, w.Name = now, kind, namespace, name
	if kind == "CronJob" {
		w.Warnings = warningsOf(ctx, client, namespace, w.uid)
		w.LastJob, err = lastJob(ctx, client, w, now)
		return w.Workload, err
	}
	owners, newest := []types.UID{w.uid}, types.UID("")
	if kind == "Deployment" {
		var sets []types.UID
		sets, newest = replicaSets(ctx, client, w)
		owners = append(owners, sets...)
		w.Rolling = len(sets) > 1 || len(sets) == 1 && w.updated < w.Wanted
	}
	for _, uid := range owners {
		w.Warnings = append(w.Warnings, warningsOf(ctx, client, namespace, uid)...)
	}
	slices.SortStableFunc(w.Warnings, func(a, b explain.Warning) int { return a.Last.Compare(b.Last) })
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(w.selector)})
	if err != nil {
		return explain.Workload{}, fmt.Errorf("pods of %s %s/%s: %w", kind, namespace, name, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if owner := metav1.GetControllerOf(pod); owner == nil || !slices.Contains(owners, owner.UID) {
			continue
		}
		f := explain.Facts{Now: now, Pod: pod}
		if len(w.Pods) < maxPods {
			f = about(ctx, client, pod, now)
		}
		w.Pods = append(w.Pods, f)
		switch {
		case !w.Rolling:
		case metav1.GetControllerOf(pod).UID == newest:
			w.New = append(w.New, f)
		case ready(pod):
			w.Served++
		}
	}
	return w.Workload, nil
}

// deleted notes whether an object is being deleted.
func (w *workload) deleted(object metav1.Object) {
	if at := object.GetDeletionTimestamp(); at != nil {
		w.Deleted, w.Finalizers = at.Time, object.GetFinalizers()
	}
}

func read(ctx context.Context, client kubernetes.Interface, kind, namespace, name string) (w workload, err error) {
	get := metav1.GetOptions{}
	switch kind {
	case "Deployment":
		var d *appsv1.Deployment
		if d, err = client.AppsV1().Deployments(namespace).Get(ctx, name, get); err == nil {
			w.uid, w.selector, w.Wanted, w.Ready, w.Paused = d.UID, d.Spec.Selector, count1(d.Spec.Replicas), int(d.Status.ReadyReplicas), d.Spec.Paused
			w.updated = int(d.Status.UpdatedReplicas)
			w.deleted(d)
			for _, c := range d.Status.Conditions {
				if c.Type == appsv1.DeploymentReplicaFailure && c.Status == v1.ConditionTrue {
					w.Warnings = append(w.Warnings, explain.Warning{Reason: "ReplicaFailure", Message: c.Message, Last: c.LastUpdateTime.Time})
				}
			}
		}
	case "ReplicaSet":
		var r *appsv1.ReplicaSet
		if r, err = client.AppsV1().ReplicaSets(namespace).Get(ctx, name, get); err == nil {
			w.uid, w.selector, w.Wanted, w.Ready = r.UID, r.Spec.Selector, count1(r.Spec.Replicas), int(r.Status.ReadyReplicas)
			w.deleted(r)
		}
	case "StatefulSet":
		var s *appsv1.StatefulSet
		if s, err = client.AppsV1().StatefulSets(namespace).Get(ctx, name, get); err == nil {
			w.uid, w.selector, w.Wanted, w.Ready = s.UID, s.Spec.Selector, count1(s.Spec.Replicas), int(s.Status.ReadyReplicas)
			w.Revision = s.Status.UpdateRevision
			w.deleted(s)
		}
	case "DaemonSet":
		var d *appsv1.DaemonSet
		if d, err = client.AppsV1().DaemonSets(namespace).Get(ctx, name, get); err == nil {
			w.uid, w.selector, w.Wanted, w.Ready = d.UID, d.Spec.Selector, int(d.Status.DesiredNumberScheduled), int(d.Status.NumberReady)
			w.deleted(d)
		}
	case "Job":
		var j *batchv1.Job
		if j, err = client.BatchV1().Jobs(namespace).Get(ctx, name, get); err == nil {
			w.uid, w.selector, w.Wanted = j.UID, j.Spec.Selector, count1(j.Spec.Parallelism)
			if j.Spec.Completions != nil { // at the end fewer pods are needed than may work at a time
				w.Wanted = min(w.Wanted, max(1, int(*j.Spec.Completions-j.Status.Succeeded)))
			}
			w.deleted(j)
			w.Suspended = j.Spec.Suspend != nil && *j.Spec.Suspend
			if j.Status.Ready != nil {
				w.Ready = int(*j.Status.Ready)
			}
			for _, c := range j.Status.Conditions {
				switch {
				case c.Status != v1.ConditionTrue:
				case c.Type == batchv1.JobComplete:
					w.Complete = true
				case c.Type == batchv1.JobFailed:
					w.Failed = cmp.Or(c.Reason, "Failed") + ": " + c.Message
				}
			}
		}
	case "CronJob":
		var j *batchv1.CronJob
		if j, err = client.BatchV1().CronJobs(namespace).Get(ctx, name, get); err == nil {
			w.uid, w.Schedule, w.Wanted = j.UID, j.Spec.Schedule, 1
			w.deleted(j)
			w.Suspended = j.Spec.Suspend != nil && *j.Spec.Suspend
		}
	default:
		err = fmt.Errorf("no workload")
	}
	return w, err
}

// lastJob returns the newest Job of a CronJob, or nil.
func lastJob(ctx context.Context, client kubernetes.Interface, w workload, now time.Time) (*explain.Workload, error) {
	list, err := client.BatchV1().Jobs(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("jobs of CronJob %s/%s: %w", w.Namespace, w.Name, err)
	}
	var newest *batchv1.Job
	for i := range list.Items {
		job := &list.Items[i]
		if owner := metav1.GetControllerOf(job); owner != nil && owner.UID == w.uid && (newest == nil || newest.CreationTimestamp.Before(&job.CreationTimestamp)) {
			newest = job
		}
	}
	if newest == nil {
		return nil, nil
	}
	last, err := Workload(ctx, client, "Job", w.Namespace, newest.Name, now)
	last.Created = newest.CreationTimestamp.Time
	return &last, err
}

func ready(pod *v1.Pod) bool {
	c := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
	return c != nil && c.Status == v1.ConditionTrue
}

// replicaSets are the ReplicaSets of a Deployment that are to have pods, and the ReplicaSet of its newest version.
func replicaSets(ctx context.Context, client kubernetes.Interface, w workload) (uids []types.UID, newest types.UID) {
	list, err := client.AppsV1().ReplicaSets(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(w.selector)})
	if err != nil {
		return nil, ""
	}
	most := -1
	for i := range list.Items {
		set := &list.Items[i]
		if owner := metav1.GetControllerOf(set); owner == nil || owner.UID != w.uid || count1(set.Spec.Replicas) == 0 {
			continue
		}
		uids = append(uids, set.UID)
		if revision, _ := strconv.Atoi(set.Annotations["deployment.kubernetes.io/revision"]); revision > most {
			most, newest = revision, set.UID
		}
	}
	return uids, newest
}

// telling are the reasons of events that say why something does not happen although they are no warnings.
var telling = []string{"JobAlreadyActive", "ExternalProvisioning"}

// warningsOf are the warnings about an object, the newest last.
func warningsOf(ctx context.Context, client kubernetes.Interface, namespace string, uid types.UID) (found []explain.Warning) {
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.uid": string(uid)}.String(), Limit: maxEvents})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		if e := &list.Items[i]; e.InvolvedObject.UID == uid && (e.Type == v1.EventTypeWarning || slices.Contains(telling, e.Reason)) {
			found = append(found, explain.Warning{Reason: e.Reason, Message: e.Message, Count: count(e), Last: last(e)})
		}
	}
	slices.SortStableFunc(found, func(a, b explain.Warning) int { return a.Last.Compare(b.Last) })
	return found
}

// count1 is a number of replicas, 1 if none is given.
func count1(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}
