package record

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A history that is read again is the one that was written, in the order of time; a line that a kill has cut is left out.
func TestRead(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file)
	w.Add(Record{At: 2, Kind: Version, UID: "a", RV: 7, Facts: &Facts{Number: 3, Phase: v1.PodRunning, Ready: true}})
	w.Add(Record{At: 1, Kind: Want, UID: "a", Absent: true, Within: time.Second})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	file.WriteString(`{"at":3,"kind":"ver`)
	got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{At: 1, Kind: Want, UID: "a", Absent: true, Within: time.Second},
		{At: 2, Kind: Version, UID: "a", RV: 7, Facts: &Facts{Number: 3, Phase: v1.PodRunning, Ready: true}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFactsOf(t *testing.T) {
	pod := &v1.Pod{Status: v1.PodStatus{
		Phase: v1.PodFailed, Message: Message(12),
		Conditions:        []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: Gate, Message: "5"}},
		ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 2}}}},
	}}
	if got, want := *FactsOf(pod), (Facts{Number: 12, Phase: v1.PodFailed, Ready: true, Exit: 2, Gate: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	pod.Status.ContainerStatuses[0].State = v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	if got := *FactsOf(pod); got.Running != 1 || got.Exit != 0 {
		t.Errorf("got %+v, want a container that runs", got)
	}
}
