package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/patience"
)

const broken = `apiVersion: v1
kind: Pod
metadata: {name: broken}
spec:
  containers:
    - name: crash
      image: host
      command: [sh, -c, "echo no such table >&2; exit 3"]
    - name: db
      image: host
      command: [sleep, "1000000"]
      readinessProbe: {exec: {command: [sh, -c, "echo not yet; exit 1"]}, periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 1}
      lifecycle: {postStart: {exec: {command: ["true"]}}}
`

// awaitRecord waits until the history of a pod has a record, and returns it.
func awaitRecord(t *testing.T, a *Process, namespace, name string, is func(history.Record) bool) history.Record {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	for event := range a.console.History.Watch(ctx, 0) {
		if event.Pod.Namespace == namespace && event.Pod.Name == name && is(event.Record) {
			return event.Record
		}
	}
	pod, _ := a.console.History.Pod(namespace, name)
	t.Fatalf("the record has not come; there are %+v", pod.Records)
	return history.Record{}
}

// A node explains a broken pod by what its workers and probes know, and the history has the steps,
// also after a restart.
func TestABrokenPodIsExplainedByWhatTheNodeKnows(t *testing.T) {
	c := testConfig(t, "n1")
	if err := os.WriteFile(filepath.Join(c.Manifests, "broken.yaml"), []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	a, stop := started(t, c)
	const namespace, name = "default", "broken-n1"
	of := func(kind history.Kind, subject, to string) func(history.Record) bool {
		return func(r history.Record) bool { return r.Kind == kind && r.Subject == subject && r.To == to }
	}
	awaitRecord(t, a, namespace, name, of(history.KindAdmission, "", "admitted"))
	awaitRecord(t, a, namespace, name, of(history.KindHook, "postStart", "succeeded"))
	verdict := awaitRecord(t, a, namespace, name, of(history.KindProbe, "readiness", "failed"))
	if verdict.Container != "db" || !strings.Contains(verdict.Message, "not yet") {
		t.Errorf("verdict: got %+v", verdict)
	}
	awaitRecord(t, a, namespace, name, func(r history.Record) bool {
		return r.Kind == history.KindContainer && r.Container == "crash" && r.Reason == "CrashLoopBackOff"
	})

	pod := podNamed(t, a, name)
	f := inBackOff(t, a, pod, "crash")
	sentence := explain.Pod(f).Sentence(time.UTC)
	for _, part := range []string{
		"is not Ready", `container "crash" is not ready: exit code 3`, "next start in",
		`container "db" is not ready: its readiness probe`, "has failed", `last answer "not yet`,
	} {
		if !strings.Contains(sentence, part) {
			t.Errorf("the sentence lacks %q: %s", part, sentence)
		}
	}
	if f.Containers["db"].Readiness == nil || len(f.Warnings) == 0 {
		t.Errorf("facts: %+v", f)
	}
	before, _ := a.console.History.Pod(namespace, name)
	stop()

	again, _ := started(t, c)
	after, ok := again.console.History.Pod(namespace, name)
	if !ok || len(after.Records) < len(before.Records) {
		t.Errorf("after a restart: got %d records, had %d", len(after.Records), len(before.Records))
	}
	if n := len(again.console.History.Node()); n < 2 {
		t.Errorf("the node has %d records, want that it was started and stopped", n)
	}
}

// inBackOff are the facts of a pod at a time when one of its containers waits for its next start.
func inBackOff(t *testing.T, a *Process, pod *v1.Pod, container string) explain.Facts {
	t.Helper()
	for {
		awaitStatus(t, a, pod.Name, container+" in back-off", func(s *v1.PodStatus) bool {
			c := podstatus.FindContainerStatus(s, container)
			return c != nil && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
		})
		if f := a.node.Facts(pod); f.Containers[container].NextStart.After(f.Now) {
			return f
		} // else it starts again just now
		if !backoff.Sleep(t.Context(), 10*time.Millisecond) {
			t.Fatal("the test has ended")
		}
	}
}

func podNamed(t *testing.T, a *Process, name string) *v1.Pod {
	t.Helper()
	for _, pod := range a.node.Table.All() {
		if pod.Name == name {
			return pod
		}
	}
	t.Fatalf("there is no pod %s", name)
	return nil
}

func TestNodeRecords(t *testing.T) {
	at := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	healthy := explain.Node{}
	ill := explain.Node{Pressure: []v1.NodeConditionType{v1.NodeDiskPressure}, ShuttingDown: true, Unreachable: at}
	if got := nodeRecords(healthy, ill); len(got) != 3 || got[0].Subject != "DiskPressure" || got[1].To != "shutting down" || got[2].To != "unreachable" {
		t.Errorf("got %+v", got)
	}
	if got := nodeRecords(ill, healthy); len(got) != 3 || got[0].To != "False" || got[1].To != "canceled" || got[2].To != "reachable" {
		t.Errorf("got %+v", got)
	}
	if got := nodeRecords(ill, ill); got != nil {
		t.Errorf("got %+v", got)
	}
}
