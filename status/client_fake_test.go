package status_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// The first test of an embedder is with client-go's fake clientset.
func TestFakeClientset_APodsWholeLife(t *testing.T) {
	for name, newClientset := range map[string]func(...kruntime.Object) kubernetes.Interface{
		"NewClientset":       func(objects ...kruntime.Object) kubernetes.Interface { return fake.NewClientset(objects...) },
		"NewSimpleClientset": func(objects ...kruntime.Object) kubernetes.Interface { return fake.NewSimpleClientset(objects...) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job-uid"},
					Spec:       v1.PodSpec{NodeName: "node", RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main"}}},
				}
				other := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", UID: "other-uid"}, Spec: v1.PodSpec{NodeName: "elsewhere"}}
				clientset := newClientset(pod, other)
				manager, err := status.New(status.Options{Client: status.NewClient(clientset.CoreV1(), "node")})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				factory := informers.NewSharedInformerFactory(clientset, 0)
				informer := factory.Core().V1().Pods().Informer()
				informer.AddEventHandler(manager.EventHandler())
				factory.Start(ctx.Done())
				defer factory.Shutdown()
				defer cancel()
				go manager.Run(ctx)
				synctest.Wait() // a fake watch has no past: what happens between list and watch is lost

				job := podstatus.Attempt{Container: "main", ID: "x://1", State: podstatus.AttemptRunning, StartedAt: time.Now()}
				report := func(facts podstatus.Facts, want v1.PodPhase) {
					t.Helper()
					if _, err := manager.SetPodStatus(pod, podstatus.Generate(pod, facts, pod.Status, time.Now())); err != nil {
						t.Error(err)
					}
					if err := manager.Flush(ctx); err != nil {
						t.Error(err)
					}
					if got, err := clientset.CoreV1().Pods("ns").Get(ctx, "job", metav1.GetOptions{}); err != nil || got.Status.Phase != want {
						t.Errorf("got %v, %v, want %s", got.Status.Phase, err, want)
					}
				}
				report(podstatus.Facts{Attempts: []podstatus.Attempt{job}, Sandbox: true}, v1.PodRunning)

				now, grace := metav1.Now(), int64(30)
				deleted, err := clientset.CoreV1().Pods("ns").Get(ctx, "job", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = &now, &grace
				if _, err := clientset.CoreV1().Pods("ns").Update(ctx, deleted, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				job.State, job.FinishedAt = podstatus.AttemptExited, time.Now()
				report(podstatus.Facts{Attempts: []podstatus.Attempt{job}, Ended: true}, v1.PodSucceeded)
				if err := manager.TerminatePod(deleted); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if _, err := clientset.CoreV1().Pods("ns").Get(ctx, "job", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("the finished pod is not deleted: %v, %+v", err, manager.Pending())
				}
				if got := manager.Statuses(); len(got) != 0 {
					t.Errorf("left in the manager: %+v", got)
				}
				if err := manager.Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestNewClientWithoutAClientset_IsRefusedByNew(t *testing.T) {
	_, err := status.New(status.Options{Client: status.NewClient(nil, "node")})
	if err == nil || !strings.Contains(err.Error(), "NewClient was given a nil client") {
		t.Errorf("got %v", err)
	}
}

// The fake clientset has no resource versions: what its watch brings last is the newest.
func TestFakeClientset_WhatAnotherWriterChangesIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web-uid"}, Spec: v1.PodSpec{NodeName: "node"}}
		clientset := fake.NewClientset(pod)
		manager, err := status.New(status.Options{Client: status.NewClient(clientset.CoreV1(), "node")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(clientset, 0)
		defer factory.Shutdown()
		defer cancel()
		factory.Core().V1().Pods().Informer().AddEventHandler(manager.EventHandler())
		factory.Start(ctx.Done())
		go manager.Run(ctx)
		synctest.Wait()
		if _, err := manager.SetPodStatus(pod, v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.1"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			synctest.Wait()
			changed, err := clientset.CoreV1().Pods("ns").Get(ctx, "web", metav1.GetOptions{})
			if err != nil || changed.Status.PodIP != "10.0.0.1" {
				t.Fatalf("got the address %q, %v", changed.Status.PodIP, err)
			}
			changed.Status.PodIP = "10.9.9.9"
			if _, err := clientset.CoreV1().Pods("ns").UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
