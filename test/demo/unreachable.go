package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

const (
	unreachableSize = 100
	// away is how long statusd is stopped: longer than the 50 s after which kube-controller-manager
	// takes a silent node for unreachable and marks its pods.
	away = time.Minute
	// readyWithin is how soon all pods must be ready after the return.
	readyWithin = 5 * time.Second
	// calm is how long nothing may be taken back after that.
	calm = 20 * time.Second
)

// unreachable stops statusd until the node lifecycle controller has marked the pods, and starts it again.
func (d *demo) unreachable(ctx context.Context) error {
	return d.withCrowd(ctx, unreachableSize, withControllers, func(c *crowd) error {
		w, err := c.watchReadiness(ctx)
		if err != nil {
			return err
		}
		defer w.events.Stop()
		stopped := time.Now()
		if err := c.daemon.stop(ctx); err != nil {
			return err
		}
		c.say("stopped statusd for %s; its containers run on", away)
		if err := w.follow(ctx, away-time.Since(stopped), func() bool { return false }); err != nil {
			return err
		}
		c.say("after %s the controllers have marked %d of %d pods as not ready", since(stopped), c.size-w.ready, c.size)
		if w.ready > 0 {
			return fmt.Errorf("%d pods are still ready: the node did not count as unreachable", w.ready)
		}
		return c.comeBack(ctx, w)
	})
}

// comeBack starts statusd again and measures.
func (c *crowd) comeBack(ctx context.Context, w *readiness) (err error) {
	w.changes, w.lost = 0, 0
	begin := time.Now()
	if c.daemon, err = c.startStatusd(c.daemon.config); err != nil {
		return err
	}
	if err := w.follow(ctx, stopTimeout, func() bool { return w.ready == c.size }); err != nil {
		return err
	}
	took := time.Since(begin)
	c.say("%d of %d pods are ready %s after its start, with %d changes of pods", w.ready, c.size, took.Round(time.Millisecond), w.changes)
	if w.ready < c.size || took > readyWithin {
		return fmt.Errorf("want all of them within %s", readyWithin)
	}
	if err := w.follow(ctx, calm, func() bool { return false }); err != nil {
		return err
	}
	c.say("in the %s after that, %d changes; readiness was lost %d times", calm, w.changes-c.size, w.lost)
	if w.lost > 0 {
		return fmt.Errorf("statusd and the controllers write against each other")
	}
	return nil
}

// readiness follows the Ready condition of the pods.
type readiness struct {
	events  apiwatch.Interface
	pods    map[string]bool
	ready   int // of pods
	changes int // of pods, by any writer
	lost    int // how often a pod was ready and then not
}

func (c *crowd) watchReadiness(ctx context.Context) (*readiness, error) {
	events, err := c.admin.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return &readiness{events: events, pods: map[string]bool{}}, nil
}

// follow returns when the pods are as wanted, or after a time.
func (r *readiness) follow(ctx context.Context, atMost time.Duration, wanted func() bool) error {
	late := time.After(atMost)
	for !wanted() {
		select {
		case event := <-r.events.ResultChan():
			pod, ok := event.Object.(*v1.Pod)
			if !ok {
				return fmt.Errorf("the watch of pods ended: %v", event.Object)
			}
			if event.Type == apiwatch.Deleted {
				r.forget(pod)
			} else {
				r.take(pod)
			}
		case <-late:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (r *readiness) take(pod *v1.Pod) {
	before, isReady := r.pods[pod.Name], !isNotReady(*pod)
	r.pods[pod.Name] = isReady
	r.changes++
	switch {
	case isReady && !before:
		r.ready++
	case before && !isReady:
		r.ready--
		r.lost++
	}
}

// forget takes note of a pod that is deleted.
func (r *readiness) forget(pod *v1.Pod) {
	if r.pods[pod.Name] {
		r.ready--
	}
	delete(r.pods, pod.Name)
}
