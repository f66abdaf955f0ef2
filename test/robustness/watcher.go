package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/robustness/record"
)

// watcher records what the API has, as an administrator whom no fault touches but those of the server. It lists the pods again whenever
// its watch ends: no version that lasts is missed, and none is taken from before a restore.
type watcher struct {
	admin   kubernetes.Interface
	history *record.Writer
	truth   *truth
	known   map[string]string // names of the pods that the API has, by UID
}

// relistAfter is how long after its end a watch begins again.
const relistAfter = 100 * time.Millisecond

func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.follow(ctx)
		select {
		case <-time.After(relistAfter):
		case <-ctx.Done():
		}
	}
}

func (w *watcher) follow(ctx context.Context) {
	list, err := w.admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	listed := map[string]bool{}
	for i := range list.Items {
		listed[string(list.Items[i].UID)] = true
		w.version(&list.Items[i])
	}
	for uid := range w.known {
		if !listed[uid] {
			w.gone(uid)
		}
	}
	events, err := w.admin.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*v1.Pod)
		switch {
		case !ok:
			return
		case event.Type == watch.Deleted:
			w.gone(string(pod.UID))
		default:
			w.version(pod)
		}
	}
}

func (w *watcher) version(pod *v1.Pod) {
	w.history.Add(record.Record{Kind: record.Version, UID: string(pod.UID), Name: pod.Name, RV: record.VersionOf(pod), Facts: record.FactsOf(pod)})
	w.known[string(pod.UID)] = pod.Name
	w.truth.stored(pod)
}

func (w *watcher) gone(uid string) {
	w.history.Add(record.Record{Kind: record.Gone, UID: uid, Name: w.known[uid]})
	delete(w.known, uid)
	w.truth.removed(uid)
}
