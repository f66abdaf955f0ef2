//go:build real

package main

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// The facts come from a real API server: the pod, its warnings, and a lease that was not renewed.
func TestExplainAPodOfTheAPI(t *testing.T) {
	server := shared.Server(t)
	namespace, node := server.Namespace(t), "explained"
	if _, err := server.Admin().CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node},
		Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := server.CreatePod(t, controlplanetest.Pod(namespace, "web", node))
	kubeconfig := server.Process.AdminKubeconfig()

	got, err := explained(t, "--kubeconfig", kubeconfig, "-n", namespace, "web")
	if want := `because node "explained" has not reported anything about it`; err != nil || !strings.Contains(got, want) {
		t.Errorf("got %q (%v), want %q in it", got, err, want)
	}

	pod.Status = v1.PodStatus{Phase: v1.PodPending, StartTime: &metav1.Time{Time: time.Now()},
		Conditions:        []v1.PodCondition{{Type: v1.PodReadyToStartContainers, Status: v1.ConditionFalse}},
		ContainerStatuses: []v1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}}
	if _, err := server.Admin().CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = server.Admin().CoreV1().Events(namespace).Create(t.Context(), &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "web.", Namespace: namespace},
		InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web", UID: pod.UID},
		Type:           v1.EventTypeWarning, Reason: "FailedMount", Message: `configmap "settings" not found`, LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err = explained(t, "--kubeconfig", kubeconfig, namespace+"/web")
	if want := `because its volumes cannot be prepared: configmap "settings" not found`; err != nil || !strings.Contains(got, want) {
		t.Errorf("got %q (%v), want %q in it", got, err, want)
	}

	if _, err := explained(t, "--kubeconfig", kubeconfig, "-n", namespace, "other"); err == nil || !strings.Contains(err.Error(), `"other" not found`) {
		t.Errorf("a pod that does not exist: got %v", err)
	}
}
