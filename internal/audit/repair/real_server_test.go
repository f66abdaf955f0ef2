//go:build real

package repair_test

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/repair"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }

// server is a real API server, beside a node that is made up.
type server struct {
	*world
	repair.API
	client kubernetes.Interface
	node   string
	// before is called before a patch: what happens between get and patch.
	before func()
}

// Get and List are those of the server, not of the world.
func (s *server) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	return s.API.Get(ctx, namespace, name)
}

func (s *server) List(ctx context.Context) ([]v1.Pod, error) { return s.API.List(ctx) }

func (s *server) PatchStatus(ctx context.Context, namespace, name string, patch []byte) error {
	if s.before != nil {
		s.before()
	}
	return s.API.PatchStatus(ctx, namespace, name, patch)
}

// onServer creates a pod that the server shows as running, and the facts of a node on which it has ended.
func onServer(t *testing.T) (*server, *v1.Pod) {
	real := shared.Server(t)
	namespace := real.Namespace(t)
	node := namespace + "-node"
	created := real.CreatePod(t, controlplanetest.Pod(namespace, "web", node))
	shown := pod(created.UID, created.Spec.RestartPolicy)
	created.Status = shown.Status
	created.Status.ContainerStatuses[0].Name = created.Spec.Containers[0].Name
	written, err := real.Admin().CoreV1().Pods(namespace).UpdateStatus(t.Context(), created, metav1.UpdateOptions{FieldManager: "kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	f := facts(written)
	c := f.Containers["c1"]
	c.Namespace, c.Name = namespace, written.Spec.Containers[0].Name
	f.Containers["c1"] = c
	return &server{world: &world{facts: f}, API: repair.ForClient(real.Admin(), node), client: real.Admin(), node: node}, written
}

func (s *server) repair(t *testing.T) repair.Result {
	t.Helper()
	r, err := repair.New(repair.Options{Sides: s.world, API: s, Runtime: s.world})
	if err != nil {
		t.Fatal(err)
	}
	steps := plan(s.facts, false)
	if len(steps) != 1 {
		t.Fatalf("planned %+v", steps)
	}
	return r.Do(t.Context(), steps[0])
}

// TestServerTakesARepair: a real server takes the status, and another look finds nothing to repair.
func TestServerTakesARepair(t *testing.T) {
	s, before := onServer(t)
	if got := s.repair(t); got.Outcome != repair.Repaired {
		t.Fatalf("%s: %s", got.Outcome, got.Reason)
	}
	after, err := s.API.Get(t.Context(), before.Namespace, before.Name)
	if err != nil {
		t.Fatal(err)
	}
	ended := after.Status.ContainerStatuses[0].State.Terminated
	ready := podstatus.FindCondition(after.Status.Conditions, v1.PodReady)
	if ended == nil || ended.ExitCode != 3 || ready.Status != v1.ConditionFalse {
		t.Errorf("the server has %+v", after.Status)
	}
	if gate := podstatus.FindCondition(after.Status.Conditions, "example.com/gate"); gate == nil || gate.Status != v1.ConditionTrue {
		t.Error("the condition of another owner has changed")
	}
	s.facts.APIPods[after.UID] = audit.Sighting{Pod: after, At: now}
	for _, d := range audit.Compare(s.facts) {
		if d.Pod.UID == after.UID {
			t.Errorf("after the repair: %s: %s", d.Kind, d.Message)
		}
	}
}

// TestServerRefusesALateRepair: what happens between the look and the write wins.
func TestServerRefusesALateRepair(t *testing.T) {
	t.Run("the kubelet has written", func(t *testing.T) {
		s, p := onServer(t)
		s.before = func() {
			kubelet, err := s.API.Get(t.Context(), p.Namespace, p.Name)
			if err != nil {
				t.Fatal(err)
			}
			kubelet.Status.ContainerStatuses[0].RestartCount = 1
			if _, err := s.client.CoreV1().Pods(p.Namespace).UpdateStatus(t.Context(), kubelet, metav1.UpdateOptions{FieldManager: "kubelet"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.repair(t); got.Outcome != repair.Failed {
			t.Errorf("%s, want a refusal", got.Outcome)
		}
		after, err := s.API.Get(t.Context(), p.Namespace, p.Name)
		if err != nil || after.Status.ContainerStatuses[0].State.Running == nil {
			t.Errorf("the repair went over it: %v %+v", err, after.Status)
		}
	})
	t.Run("the pod was recreated", func(t *testing.T) {
		s, p := onServer(t)
		s.before = func() {
			none := int64(0)
			if err := s.client.CoreV1().Pods(p.Namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.client.CoreV1().Pods(p.Namespace).Create(t.Context(), controlplanetest.Pod(p.Namespace, p.Name, s.node), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.repair(t); got.Outcome != repair.Failed {
			t.Errorf("%s, want a refusal", got.Outcome)
		}
		after, err := s.API.Get(t.Context(), p.Namespace, p.Name)
		if err != nil || after.UID == p.UID || after.Status.Phase != v1.PodPending {
			t.Errorf("the repair reached the new pod: %v %+v", err, after.Status)
		}
	})
}
