package nodecondition

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Conditions come to the Node though the first tries fail, keep the time of their transition across a
// restart, and leave those of others alone.
func TestConditionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}}
		node.Status.Conditions = []v1.NodeCondition{{Type: "Ready", Status: v1.ConditionTrue, Reason: "KubeletReady"}}
		client := fake.NewClientset(node)
		failures := 3
		client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			if failures--; failures >= 0 {
				return true, nil, errors.New("refused")
			}
			return false, nil, nil
		})
		get := func() map[v1.NodeConditionType]v1.NodeCondition {
			t.Helper()
			synctest.Wait()
			current, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			all := map[v1.NodeConditionType]v1.NodeCondition{}
			for _, c := range current.Status.Conditions {
				all[c.Type] = c
			}
			return all
		}
		run := func(use func(k *Owner)) {
			keeper := New(Options{Client: client, Node: "n1", Logger: slog.New(slog.DiscardHandler)})
			k := keeper.Owner(Terms{})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { k.Run(ctx) })
			use(k)
			cancel()
			running.Wait()
		}
		deadlock := v1.NodeCondition{Type: "KernelDeadlock", Status: v1.ConditionTrue, Reason: "DockerHung", Message: "task docker:7 blocked"}
		run(func(k *Owner) {
			k.Set(deadlock)
			time.Sleep(time.Minute)
			if got := get(); !same(got["KernelDeadlock"], deadlock) || got["Ready"].Reason != "KubeletReady" {
				t.Fatalf("after some failures the conditions are %+v", got)
			}
		})
		first := get()["KernelDeadlock"].LastTransitionTime
		time.Sleep(time.Hour)
		run(func(k *Owner) {
			deadlock.Message = "another message"
			k.Set(deadlock)
			time.Sleep(time.Minute)
			if got := get()["KernelDeadlock"]; !same(got, deadlock) || !got.LastTransitionTime.Equal(&first) {
				t.Errorf("after a restart: %+v, want the transition of %v", got, first)
			}
			before := get()["KernelDeadlock"].LastHeartbeatTime
			time.Sleep(2 * DefaultHeartbeat)
			if got := get()["KernelDeadlock"].LastHeartbeatTime; got.Equal(&before) {
				t.Error("there is no heartbeat")
			}
			deadlock.Status = v1.ConditionFalse
			k.Set(deadlock)
			time.Sleep(time.Minute)
			if got := get()["KernelDeadlock"]; got.Status != v1.ConditionFalse || got.LastTransitionTime.Equal(&first) {
				t.Errorf("once it is over: %+v", got)
			}
		})
	})
}
