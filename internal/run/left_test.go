package run

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
)

// A container that was killed for lack of memory is explained by its limit and by what the node had left then.
func TestALackOfMemoryIsExplainedByTheLoadOfThen(t *testing.T) {
	a, _ := started(t, testConfig(t, "lacking"))
	killed := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.Now()}}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"},
		Spec: v1.PodSpec{NodeName: "lacking", Containers: []v1.Container{{
			Name: "main", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}},
		}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "main", State: killed}}},
	}
	a.node.Table.Set(pod)
	known, _ := a.console.Source().Pod(pod.UID)
	why := explain.Pod(known.Facts).Sentence(time.UTC)
	if !strings.Contains(why, "killed for lack of memory (its limit is 64 MiB, the node had ") || !strings.Contains(why, " left)") {
		t.Errorf("the explanation is %q", why)
	}
}
