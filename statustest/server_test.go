package statustest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/statustest"
)

func newPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       v1.PodSpec{NodeName: "node", Containers: []v1.Container{{Name: "main"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
}

func patch(pod *v1.Pod, status string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":%s}`, pod.UID, status)
}

func TestPatchThatChangesNothingIsNoWrite(t *testing.T) {
	server := statustest.New()
	pod := server.Put(newPod("web"))
	var versions []string
	for range 2 {
		answer, err := server.PatchStatus(t.Context(), "ns", "web", patch(pod, `{"phase":"Running"}`))
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, answer.ResourceVersion)
	}
	if versions[0] == pod.ResourceVersion || versions[1] != versions[0] {
		t.Errorf("versions %v after %s, want one new one", versions, pod.ResourceVersion)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault   statustest.Fault
		is      func(error) bool
		written bool
	}{
		"refused": {statustest.Always(statustest.ErrRefused), is(statustest.ErrRefused), false},
		"timeout": {statustest.Always(statustest.ErrHang), is(context.DeadlineExceeded), false},
		"lost":    {statustest.Always(statustest.ErrAnswerLost), is(statustest.ErrAnswerLost), true},
		"429":     {statustest.On("PATCH", statustest.Throttled(3)), apierrors.IsTooManyRequests, false},
		"proxy":   {statustest.LoadBalancerWithoutBackend, apierrors.IsNotFound, false},
		"other":   {statustest.On("DELETE", statustest.ErrRefused), is(nil), true},
		"409":     {func(_ context.Context, r statustest.Request) error { return statustest.Conflict(r) }, apierrors.IsConflict, false},
		"503":     {func(_ context.Context, r statustest.Request) error { return statustest.Unavailable(r, 1) }, apierrors.IsServiceUnavailable, false},
		"403":     {func(_ context.Context, r statustest.Request) error { return statustest.Forbidden(r, "no") }, apierrors.IsForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := statustest.New()
				pod := server.Put(newPod("web"))
				server.SetFault(c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := server.PatchStatus(ctx, "ns", "web", patch(pod, `{"phase":"Running"}`))
				if !c.is(err) {
					t.Errorf("the answer is %v", err)
				}
				if written := server.Pod(pod).Status.Phase == v1.PodRunning; written != c.written {
					t.Errorf("written: %v, want %v", written, c.written)
				}
				if requests := server.Requests(); len(requests) != 1 || !errors.Is(requests[0].Err, err) {
					t.Errorf("recorded %+v, want one with %v", requests, err)
				}
			})
		})
	}
}

func TestLate_TakesEffectAfterTheClientHasGivenUp(t *testing.T) {
	for name, restored := range map[string]bool{"carried out": false, "forgotten in a restore": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := statustest.New()
				pod := server.Put(newPod("web"))
				server.SetFault(statustest.Always(statustest.Late(time.Hour)))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := server.PatchStatus(ctx, "ns", "web", patch(pod, `{"phase":"Running"}`)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the answer is %v", err)
				}
				if restored {
					server.Restore(server.Backup())
				}
				for range 2 {
					if server.Pod(pod).Status.Phase == v1.PodRunning {
						t.Errorf("written after %s", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
					}
					time.Sleep(59 * time.Minute)
				}
				if written := server.Pod(pod).Status.Phase == v1.PodRunning; written == restored {
					t.Errorf("written: %v", written)
				}
			})
		})
	}
}

func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

// A watch delivers what is stored, and then changes in their order, each late by the delay.
func TestWatchDeliversInOrderAndLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := statustest.New()
		server.SetNode("node")
		server.SetWatchDelay(2 * time.Second)
		server.Put(newPod("old"))
		elsewhere := newPod("elsewhere")
		elsewhere.Spec.NodeName = "other"
		server.Put(elsewhere)
		ctx, stop := context.WithCancel(t.Context())
		begin := time.Now()
		var seen []string
		note := func(what string, object any) {
			seen = append(seen, fmt.Sprintf("%s %s %v", what, object.(*v1.Pod).Name, time.Since(begin)))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			server.Watch(ctx, cache.ResourceEventHandlerFuncs{
				AddFunc:    func(o any) { note("add", o) },
				UpdateFunc: func(_, o any) { note("update", o) },
				DeleteFunc: func(o any) { note("delete", o) },
			})
		}()
		synctest.Wait()
		pod := server.Put(newPod("new"))
		time.Sleep(time.Second)
		server.DeleteGracefully("ns", "new", 30)
		if got := server.Pod(pod); got.DeletionTimestamp == nil || got.UID != pod.UID {
			t.Errorf("after a graceful delete: %+v", got.ObjectMeta)
		}
		server.Remove("ns", "new")
		time.Sleep(time.Minute)
		stop()
		<-done
		want := []string{"add old 0s", "add new 2s", "update new 3s", "delete new 3s"}
		if !slices.Equal(seen, want) {
			t.Errorf("seen %q, want %q", seen, want)
		}
	})
}

// A restore takes resource versions back, and the watch tells what is different now.
func TestRestoreGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := statustest.New()
		pod := server.Put(newPod("web"))
		backup := server.Backup()
		server.Change(pod, func(p *v1.Pod) { p.Status.Message = "newer" })
		server.Put(newPod("later"))
		ctx, stop := context.WithCancel(t.Context())
		var deleted, updated []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			server.Watch(ctx, cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(_, o any) { updated = append(updated, o.(*v1.Pod).Name+" "+o.(*v1.Pod).ResourceVersion) },
				DeleteFunc: func(o any) { deleted = append(deleted, o.(*v1.Pod).Name) },
			})
		}()
		synctest.Wait()
		gone := server.Restore(backup)
		synctest.Wait()
		stop()
		<-done
		if len(gone) != 1 || gone[0].Name != "later" || !slices.Equal(deleted, []string{"later"}) {
			t.Errorf("gone %v, deleted %v, want the pod that the backup lacks", gone, deleted)
		}
		if !slices.Equal(updated, []string{"web " + pod.ResourceVersion}) || server.Version() != 1 {
			t.Errorf("updated %v at version %d, want the pod as it was", updated, server.Version())
		}
	})
}

func TestOverlapsAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := statustest.New()
		pod := server.Put(newPod("web"))
		server.SetLatency(time.Second)
		for range 2 {
			go server.PatchStatus(t.Context(), "ns", "web", patch(pod, `{"phase":"Running"}`))
		}
		time.Sleep(2 * time.Second)
		if got := server.Overlaps(); !slices.Equal(got, []string{"PATCH ns/web"}) {
			t.Errorf("overlaps %q", got)
		}
	})
}

// A second writer changes what is stored, and not what was stored before the patch of another one.
func TestChangesAndPatchesDoNotUndoEachOther(t *testing.T) {
	server := statustest.New()
	pod := server.Put(newPod("web"))
	const each = 200
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := range each {
			if _, err := server.PatchStatus(t.Context(), "ns", "web", patch(pod, fmt.Sprintf(`{"message":"%d"}`, i))); err != nil {
				t.Error(err)
			}
			if got := server.Pod(pod).Status.Message; got != fmt.Sprint(i) {
				t.Errorf("after patch %d the message is %q", i, got)
			}
		}
	})
	writers.Go(func() {
		for range each {
			server.Change(pod, func(p *v1.Pod) { p.Generation++ })
		}
	})
	writers.Wait()
	if got := server.Pod(pod).Generation; got != each {
		t.Errorf("%d changes left generation %d", each, got)
	}
}

// A pod that is removed while its node deletes it stays removed.
func TestADeletionDuringARemovalBringsNothingBack(t *testing.T) {
	server := statustest.New()
	for range 500 {
		pod := server.Put(newPod("web"))
		var writers sync.WaitGroup
		writers.Go(func() { server.Remove("ns", "web") })
		writers.Go(func() {
			if err := server.Delete(t.Context(), "ns", "web", pod.UID); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
		writers.Wait()
		if got := server.Pod(pod); got != nil {
			t.Fatalf("the pod is there again: %+v", got.ObjectMeta)
		}
	}
}

// A pod with a finalizer stays until the finalizer is removed, as those of Jobs do.
func TestPodWithAFinalizer_StaysUntilItIsRemoved(t *testing.T) {
	server := statustest.New()
	pod := server.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", Finalizers: []string{"batch.kubernetes.io/job-tracking"}},
		Spec:       v1.PodSpec{NodeName: "node"}, Status: v1.PodStatus{Phase: v1.PodRunning},
	})
	server.DeleteGracefully("ns", "job", 30)
	for range 2 { // the node may ask more than once
		if err := server.Delete(t.Context(), "ns", "job", pod.UID); err != nil {
			t.Fatal(err)
		}
	}
	got := server.Pod(pod)
	if got == nil || got.DeletionTimestamp == nil || *got.DeletionGracePeriodSeconds != 0 {
		t.Fatalf("after the DELETE the server has %+v, want the pod without a grace period", got)
	}
	server.Change(pod, func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} })
	if server.Pod(pod) == nil {
		t.Error("another change has removed the pod")
	}
	server.Change(pod, func(p *v1.Pod) { p.Finalizers = nil })
	if got := server.Pod(pod); got != nil {
		t.Errorf("without its finalizer the pod is still there: %+v", got.ObjectMeta)
	}
}
