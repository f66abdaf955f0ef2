package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// watchPods calls handle, from one goroutine, for the pods that there are and then for
// each change. The function that it returns ends it, and returns an error if it failed before.
func watchPods(ctx context.Context, client kubernetes.Interface, namespace string, options metav1.ListOptions,
	handle func(watch.EventType, *v1.Pod)) (stop func() error, err error) {
	pods := client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, options)
	if err != nil {
		return nil, err
	}
	options.ResourceVersion = list.ResourceVersion
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		for i := range list.Items {
			handle(watch.Added, &list.Items[i])
		}
		// The server ends watches that it finds too slow; such a one is taken up where it was.
		var err error
		for err == nil && ctx.Err() == nil {
			err = watchOnce(ctx, pods, &options, handle)
		}
		if ctx.Err() != nil {
			err = nil
		}
		done <- err
	}()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// watchOnce watches until the server ends the watch, and moves the options on to where that was.
func watchOnce(ctx context.Context, pods corev1.PodInterface, options *metav1.ListOptions, handle func(watch.EventType, *v1.Pod)) error {
	w, err := pods.Watch(ctx, *options)
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*v1.Pod)
		if !ok {
			return fmt.Errorf("watch pods: %w", apierrors.FromObject(event.Object))
		}
		options.ResourceVersion = pod.ResourceVersion
		handle(event.Type, pod)
	}
	return nil
}

// witness notes when changes can be seen in the API.
type witness struct {
	mu       sync.Mutex // guards awaited
	awaited  map[types.UID][]*sighting
	stopFunc func() error
}

// sighting is something that a witness waits to see.
type sighting struct {
	is   func(watch.EventType, *v1.Pod) bool
	seen chan struct{} // closed when it was seen
	at   time.Time     // when; read it after seen is closed
}

func newWitness(ctx context.Context, client kubernetes.Interface, namespace string) (*witness, error) {
	w := &witness{awaited: make(map[types.UID][]*sighting)}
	var err error
	w.stopFunc, err = watchPods(ctx, client, namespace, metav1.ListOptions{}, w.handle)
	return w, err
}

func (w *witness) stop() error { return w.stopFunc() }

// expect has the witness wait for something to be true of a pod. Call it before the cause.
func (w *witness) expect(uid types.UID, is func(watch.EventType, *v1.Pod) bool) *sighting {
	s := &sighting{is: is, seen: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited[uid] = append(w.awaited[uid], s)
	return s
}

func (w *witness) handle(event watch.EventType, pod *v1.Pod) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	var rest []*sighting
	for _, s := range w.awaited[pod.UID] {
		if s.is(event, pod) {
			s.at = now
			close(s.seen)
		} else {
			rest = append(rest, s)
		}
	}
	if len(rest) == 0 {
		delete(w.awaited, pod.UID)
		return
	}
	w.awaited[pod.UID] = rest
}

// last waits until all was seen and returns when that was.
func last(ctx context.Context, sightings []*sighting) (time.Time, error) {
	var at time.Time
	for i, s := range sightings {
		select {
		case <-s.seen:
		case <-ctx.Done():
			return at, fmt.Errorf("%d of %d changes were not seen: %w", len(sightings)-i, len(sightings), ctx.Err())
		}
		if s.at.After(at) {
			at = s.at
		}
	}
	return at, nil
}

// What can be seen of a pod.

func seenRunning(_ watch.EventType, pod *v1.Pod) bool { return pod.Status.Phase != v1.PodPending }
func seenReady(_ watch.EventType, pod *v1.Pod) bool   { return isReady(pod, v1.ConditionTrue) }
func seenUnready(_ watch.EventType, pod *v1.Pod) bool { return isReady(pod, v1.ConditionFalse) }
func seenEnded(event watch.EventType, pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed || event == watch.Deleted
}
func seenGone(event watch.EventType, _ *v1.Pod) bool { return event == watch.Deleted }
