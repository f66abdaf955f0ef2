package agent

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/runtime"
)

// written is a runtime that has logs and nothing else.
type written struct {
	runtime.Runtime
	logs  map[string]string
	reads int
}

func (w *written) Logs(_ context.Context, id string, _ runtime.LogOptions) (io.ReadCloser, error) {
	w.reads++
	text, ok := w.logs[id]
	if !ok {
		return nil, errors.New("there is none")
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// The log of the run that failed is among the facts, read once, without what looks like a secret.
func TestLastLogs_OfTheRunThatFailed(t *testing.T) {
	rt := &written{logs: map[string]string{"process://1": "password=hunter2\nFATAL: no such table\n"}}
	l := newLastLogs(rt)
	status := &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
		{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, ContainerID: "process://1"}}},
		{Name: "gone", LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, ContainerID: "process://2"}}},
		{Name: "well", Ready: true, LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, ContainerID: "process://1"}}},
	}}
	for range 2 {
		f := explain.Facts{Pod: &v1.Pod{Spec: v1.PodSpec{NodeName: "n"}}, Status: status, Containers: map[string]explain.Container{}}
		l.add(&f)
		if got := f.Containers["app"].Log; got == nil || !got.Previous || !slices.Equal(got.Lines, []string{"password=[redacted]", "FATAL: no such table"}) {
			t.Errorf("got %+v", got)
		}
		if f.Containers["gone"].Log != nil || f.Containers["well"].Log != nil {
			t.Errorf("got %+v", f.Containers)
		}
	}
	if rt.reads != 3 { // once, and twice the one that there is not
		t.Errorf("%d reads", rt.reads)
	}
}
