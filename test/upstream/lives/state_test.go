package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func crashing() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1234-5678", Generation: 2},
		Status: v1.PodStatus{
			ObservedGeneration: 1,
			Phase:              v1.PodRunning,
			PodIP:              "10.0.0.1",
			Conditions: []v1.PodCondition{
				{Type: "example.com/foreign", Status: v1.ConditionUnknown},
				{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady"},
				{Type: v1.PodScheduled, Status: v1.ConditionTrue},
			},
			ContainerStatuses: []v1.ContainerStatus{{
				Name:                 "main",
				RestartCount:         2,
				State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "pod=web(1234-5678)"}},
				LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
			}},
		},
	}
}

func TestDescribeSaysWhatKubectlPrintsAndWhatItDoesNot(t *testing.T) {
	got := recording{{state: describe(event{kind: watch.Modified, row: printed{"0/1", "CrashLoopBackOff", "2"}, pod: crashing()})}}.String()
	want := ` 0.0  0/1   CrashLoopBackOff     2
      Running, generation 1 of 2, pod IP
      +scheduled -ready(ContainersNotReady) ?example.com/foreign
      main: waiting CrashLoopBackOff "pod=web(UID)", restarts 2, before: exited 3 Error
`
	if got != want {
		t.Errorf("a crashing pod is described as\n%swant\n%s", got, want)
	}
}

func TestDescribeOfDeletedPodIsGone(t *testing.T) {
	if got := describe(event{kind: watch.Deleted, pod: crashing()}); !got.equal(gone) {
		t.Errorf("a deleted pod is described as %v, want %v", got, gone)
	}
}

func TestDecodeEventTakesTheServersColumns(t *testing.T) {
	pod, err := json.Marshal(crashing())
	if err != nil {
		t.Fatal(err)
	}
	table, err := json.Marshal(metav1.Table{Rows: []metav1.TableRow{{
		Cells:  []any{"web", "0/1", "CrashLoopBackOff", "2 (5s ago)", "1m"},
		Object: runtime.RawExtension{Raw: pod},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeEvent(metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: table}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (printed{"0/1", "CrashLoopBackOff", "2"}); got.row != want || got.kind != watch.Modified || got.pod.UID != "1234-5678" {
		t.Errorf("got row %v of a %s pod %s, want %v of the MODIFIED pod: restarts without how long ago", got.row, got.kind, got.pod.UID, want)
	}
	if _, err := decodeEvent(metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: []byte(`{"kind":"Status","reason":"Expired"}`)}}); err == nil || !strings.Contains(err.Error(), "Expired") {
		t.Errorf("an error event gives %v, want an error that tells the server's reason", err)
	}
}

func TestRecordingSurvivesItsText(t *testing.T) {
	first := describe(event{kind: watch.Modified, row: printed{"0/1", "CrashLoopBackOff", "2"}, pod: crashing()})
	text := recording{{after: 1500 * time.Millisecond, state: first}, {after: 20 * time.Second, state: gone}}.String()
	read, err := parseRecording(text)
	if err != nil {
		t.Fatal(err)
	}
	if read.String() != text {
		t.Errorf("read and written again it is\n%swant\n%s", read, text)
	}
	if _, err := parseRecording("no time here\n"); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("text that is no recording gives %v, want an error that names the line", err)
	}
}

func TestQuantitiesOfAnEvictionAreLeftOut(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: v1.PodStatus{Reason: "Evicted", Message: "Threshold quantity: 60397980, available: 42968Ki. Container main was using 48Ki, request is 0"}}
	got := describe(event{pod: pod}).details[1]
	if want := `because Evicted "Threshold quantity: N, available: N. Container main was using N, request is 0"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
