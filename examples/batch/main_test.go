package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

// node is the program with a fake API server.
type node struct {
	*testing.T
	ctx     context.Context
	server  *statustest.Server
	manager *status.Manager
	client  *http.Client
}

// leavesNothing has waves of pods end by themselves, be deleted while they run, or disappear from the API. Nothing of
// them stays: no status, no goroutine, no memory.
func leavesNothing(t *testing.T, waves int) {
	t.Helper()
	ctx, cancel := beforeDeadline(t)
	defer cancel()
	n := &node{T: t, ctx: ctx, server: statustest.New(), client: &http.Client{Transport: &http.Transport{}}}
	web := httptest.NewServer(n.server)
	defer web.Close()
	clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: web.URL}, n.client)
	if err != nil {
		t.Fatal(err)
	}
	core := clientset.CoreV1().RESTClient() // of the informer; the manager is spared the way through HTTP
	if n.manager, err = status.New(status.Options{Client: n.server.Client(), Workers: 8}); err != nil {
		t.Fatal(err)
	}
	delivering, end := context.WithCancel(t.Context())
	defer end()
	reporting, stop := context.WithCancel(t.Context())
	defer stop() // before the server is closed, which waits for the watch
	done := make(chan error, 2)
	go func() { done <- n.manager.Run(delivering) }()
	go func() {
		done <- run(reporting, n.manager, cache.NewListWatchFromClient(core, "pods", "", fields.OneTermEqualSelector("spec.nodeName", "batch")))
	}()

	n.wave(0)
	heap, goroutines := n.measure(0)
	for i := 1; i < waves; i++ {
		n.wave(i)
	}
	heapAfter, goroutinesAfter := n.measure(goroutines)
	t.Logf("after %d pods: heap %d KiB, %d goroutines; after %d pods: heap %d KiB, %d goroutines; statuses %d, pending %d",
		perWave, heap>>10, goroutines, waves*perWave, heapAfter>>10, goroutinesAfter, len(n.manager.Statuses()), len(n.manager.Pending()))
	// One status alone takes about 1 KiB, and the pod in the table another: a leak is 16 MiB and more.
	if grown := int64(heapAfter) - int64(heap); grown > 4<<20 {
		t.Errorf("the heap has grown by %d KiB over %d pods", grown>>10, (waves-1)*perWave)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	end()
	if err := <-done; err != nil {
		t.Errorf("manager: %v", err)
	}
}

// beforeDeadline ends while there is still time to say what is missing: a leak is waited for in vain.
func beforeDeadline(t *testing.T) (context.Context, context.CancelFunc) {
	if deadline, ok := t.Deadline(); ok {
		return context.WithDeadline(t.Context(), deadline.Add(-10*time.Second))
	}
	return context.WithCancel(t.Context())
}

// wave has perWave pods come and go. Of each four, two end by themselves and are then deleted, one
// is deleted while it runs, one is removed from the API without its node.
func (n *node) wave(number int) {
	n.Helper()
	n.server.ForgetRequests()
	name := func(i int) string { return fmt.Sprintf("job-%d-%d", number, i) }
	for i := range perWave {
		n.server.Put(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: name(i), Generation: 1},
			Spec:       v1.PodSpec{NodeName: "batch", RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "job"}}},
			Status:     v1.PodStatus{Phase: v1.PodPending},
		})
	}
	for i := range perWave {
		switch i % 4 {
		case 0:
			n.server.DeleteGracefully("jobs", name(i), 30)
		case 1:
			n.server.Remove("jobs", name(i))
		}
	}
	n.await("the other half has succeeded", func() bool {
		pods := n.server.Pods()
		for _, pod := range pods {
			if pod.Status.Phase != v1.PodSucceeded {
				return false
			}
		}
		return len(pods) == perWave/2
	})
	for _, pod := range n.server.Pods() {
		n.server.DeleteGracefully(pod.Namespace, pod.Name, 30)
	}
	n.await("everything is forgotten", func() bool {
		return len(n.server.Pods()) == 0 && len(n.manager.Statuses()) == 0 && len(n.manager.Pending()) == 0
	})
}

// await polls, because a fake server, an informer and the program have no common event.
func (n *node) await(what string, is func() bool) {
	n.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-n.ctx.Done():
			n.Fatalf("not so: %s; the manager has %d statuses, %d pending", what, len(n.manager.Statuses()), len(n.manager.Pending()))
		}
	}
}

// measure returns the heap and the goroutines, once there are no more than atMost of them, if that is
// set: the goroutines of connections end a little later.
func (n *node) measure(atMost int) (heap uint64, goroutines int) {
	n.Helper()
	n.server.ForgetRequests()
	n.await("the goroutines have ended", func() bool {
		n.client.CloseIdleConnections()
		goroutines = runtime.NumGoroutine()
		return atMost == 0 || goroutines <= atMost
	})
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc, goroutines
}
