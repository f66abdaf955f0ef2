package view_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
)

// A container that waits in back-off still has its probes.
func TestProbes_AreListedWithoutAResult(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", LivenessProbe: &v1.Probe{}}}}}
	d := view.Detail(view.Pod{Facts: explain.Facts{Now: time.Now(), Pod: pod}}, nil, time.UTC)
	if got := d.ContainerDetails[0].Probes; len(got) != 1 || got[0].Kind != view.ProbeLiveness || got[0].OK != nil {
		t.Errorf("got %+v", got)
	}
}
