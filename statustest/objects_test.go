package statustest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

func clientset(t *testing.T, s *Server) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestNodesAreStoredWithTheirStatusApart(t *testing.T) {
	s := New()
	nodes := clientset(t, s).CoreV1().Nodes()
	created, err := nodes.Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Phase: v1.NodeRunning}}, metav1.CreateOptions{})
	if err != nil || created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() {
		t.Fatalf("created %+v, %v", created, err)
	}
	if _, err := nodes.Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one of the name: %v", err)
	}
	patched, err := nodes.Patch(t.Context(), "n", types.StrategicMergePatchType,
		[]byte(`{"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil || patched.Spec.Unschedulable || len(patched.Status.Conditions) != 1 {
		t.Errorf("patch of the status: unschedulable %v, conditions %v, %v", patched.Spec.Unschedulable, patched.Status.Conditions, err)
	}
	patched, err = nodes.Patch(t.Context(), "n", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}},"status":{"phase":"Pending"}}`), metav1.PatchOptions{})
	if err != nil || patched.Labels["a"] != "b" || patched.Status.Phase != v1.NodeRunning {
		t.Errorf("patch of the Node: %v, %s, %v", patched.Labels, patched.Status.Phase, err)
	}
	if _, err := nodes.Patch(t.Context(), "n", types.StrategicMergePatchType, []byte(`{"metadata":{"uid":"other"}}`), metav1.PatchOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("patch for another UID: %v, want a conflict", err)
	}
	if err := nodes.Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := nodes.Get(t.Context(), "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of a deleted Node: %v", err)
	}
}

func TestUpdateOfAnOlderVersionIsAConflict(t *testing.T) {
	s := New()
	leases := clientset(t, s).CoordinationV1().Leases("kube-node-lease")
	first, err := leases.Create(t.Context(), &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	holder := "n"
	first.Spec.HolderIdentity = &holder
	if _, err := leases.Update(t.Context(), first, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an older version: %v, want a conflict", err)
	}
	list, err := leases.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || *list.Items[0].Spec.HolderIdentity != "n" {
		t.Errorf("list: %+v, %v", list, err)
	}
}

func TestObjectWithAFinalizer_StaysUntilItIsRemoved(t *testing.T) {
	s := New()
	client := clientset(t, s)
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Finalizers: []string{"example.com/f"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	left, err := maps.Get(t.Context(), "c", metav1.GetOptions{})
	if err != nil || left.DeletionTimestamp == nil {
		t.Fatalf("after the deletion: %+v, %v", left, err)
	}
	if _, err := maps.Patch(t.Context(), "c", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "c", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without the finalizer: %v, want not found", err)
	}
	pod := s.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Finalizers: []string{"example.com/f"}}})
	s.DeleteGracefully("default", "p", 0)
	if s.Pod(pod) == nil {
		t.Fatal("the pod is gone although it has a finalizer")
	}
	if _, err := client.CoreV1().Pods("default").Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if s.Pod(pod) != nil {
		t.Error("the pod is there although its finalizer was removed")
	}
}

// A program with informers runs in virtual time; what its requests meet is up to the test.
func TestInformersRunInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		client := clientset(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		nodes, pods := factory.Core().V1().Nodes().Lister(), factory.Core().V1().Pods().Lister()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		defer factory.Shutdown()
		defer cancel()
		if _, err := client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}})
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := nodes.Get("n"); err != nil {
			t.Error(err)
		}
		if _, err := pods.Pods("default").Get("p"); err != nil {
			t.Error(err)
		}
		s.SetFault(func(_ context.Context, r Request) error {
			switch {
			case r.Resource == "nodes" && r.Verb == "DELETE":
				return ErrHang
			case r.Resource == "nodes":
				return ErrRefused
			}
			return nil
		})
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if err := client.CoreV1().Nodes().Delete(short, "n", metav1.DeleteOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that hangs: %v", err)
		}
		if _, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "connection reset") {
			t.Errorf("a connection that breaks: %v", err)
		}
		if got := s.Count("GET"); got != 0 {
			t.Errorf("%d GET of pods, want none: requests for Nodes count apart", got)
		}
	})
}
