package main

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/internal/controlplanetest"
	"github.com/statusd/statusd/podstatus"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }

func TestAgentMakesAPodReadyAndLetsItGo(t *testing.T) {
	server := shared.Server(t)
	ns := server.Namespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	agent, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	config := server.NodeConfig(t, "example")
	a, err := newAgent(config, "example")
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- a.run(agent) }()

	pods := server.Admin().CoreV1().Pods(ns)
	events, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	server.CreatePod(t, controlplanetest.Pod(ns, "web", "example"))
	await(ctx, t, events, "Ready", func(e watch.Event) bool {
		ready := podstatus.FindCondition(e.Object.(*v1.Pod).Status.Conditions, v1.PodReady)
		scheduled := podstatus.FindCondition(e.Object.(*v1.Pod).Status.Conditions, v1.PodScheduled)
		return ready != nil && ready.Status == v1.ConditionTrue && scheduled != nil && scheduled.Status == v1.ConditionTrue
	})
	grace := int64(300)
	if err := pods.Delete(ctx, "web", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, events, "deleted", func(e watch.Event) bool { return e.Type == watch.Deleted })
	if _, err := pods.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod is still there: %v", err)
	}

	// One that is deleted by force goes without a word of the agent, which forgets it all the same.
	server.CreatePod(t, controlplanetest.Pod(ns, "forced", "example"))
	await(ctx, t, events, "Ready", func(e watch.Event) bool { return e.Object.(*v1.Pod).Status.Phase == v1.PodRunning })
	now := int64(0)
	if err := pods.Delete(ctx, "forced", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, events, "deleted", func(e watch.Event) bool { return e.Type == watch.Deleted })
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for len(a.table.All()) > 0 || len(a.manager.Pending()) > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("the agent still knows %d pods", len(a.table.All()))
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func await(ctx context.Context, t *testing.T, events watch.Interface, want string, is func(watch.Event) bool) {
	t.Helper()
	for {
		select {
		case <-ctx.Done():
			t.Fatalf("the pod did not become %s", want)
		case e, ok := <-events.ResultChan():
			if !ok {
				t.Fatalf("the watch ended before the pod was %s", want)
			}
			if is(e) {
				return
			}
		}
	}
}
