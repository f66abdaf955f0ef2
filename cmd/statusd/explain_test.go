package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/controlplanetest"
)

const crashing = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, creationTimestamp: "2026-03-14T10:00:00Z"}
spec: {nodeName: n1, restartPolicy: Always, containers: [{name: db, image: db}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-03-14T10:32:05Z"}]
  containerStatuses:
  - {name: db, image: db, ready: false, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}},
     lastState: {terminated: {exitCode: 3, reason: Error, message: no such table, finishedAt: "2026-03-14T10:32:04Z"}}}
`

func explained(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := command(append([]string{"explain"}, args...), &out)
	return out.String(), err
}

func TestExplainAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	writeFile(t, file, crashing)
	for output, want := range map[string]string{
		"text": `container "db" is not ready: it is in crash-loop back-off`,
		"json": `"code": "CrashLoopBackOff"`,
		"yaml": "state: NotReady",
	} {
		if got, err := explained(t, "-f", file, "-o", output); err != nil || !strings.Contains(got, want) {
			t.Errorf("-o %s prints %q (%v), want %q in it", output, got, err, want)
		}
	}
}

func TestExplainRefusesWhatIsNoPod(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"list":    {"apiVersion: v1\nkind: List\nitems: []\n", "there is no pod in it"},
		"garbage": {"{{{", "yaml"},
		"empty":   {"", "there is no pod in it"},
		"no name": {"apiVersion: v1\nkind: Pod\n", "metadata.name"},
		"large":   {strings.Repeat("#", maxPodFile+1), "more than 64 MiB"},
	} {
		file := filepath.Join(dir, name)
		writeFile(t, file, c.text)
		if got, err := explained(t, "-f", file); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %q, %v, want an error with %q and the file", name, got, err, c.want)
		}
	}
	if _, err := explained(t, "-f", filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	for _, args := range [][]string{{}, {"web", "-f", "x"}, {"web", "-o", "xml"}, {"a", "b"}} {
		if _, err := explained(t, args...); !errors.Is(err, errUsage) {
			t.Errorf("explain %v: got %v, want a hint at the usage", args, err)
		}
	}
}

// The facts come from a real API server: the pod, its warnings, and a lease that was not renewed.
func TestExplainAPodOfTheAPI(t *testing.T) {
	server := shared.Server(t)
	namespace, node := server.Namespace(t), "explained"
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
