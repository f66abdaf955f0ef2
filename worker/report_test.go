package worker_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestEphemeralContainersAreRefused(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		edited := pod.DeepCopy()
		edited.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
		n.update(edited)
		got := n.get(pod).EphemeralContainerStatuses
		if len(got) != 1 || got[0].State.Waiting == nil || got[0].State.Waiting.Message != "ephemeral containers are not supported on this node" {
			t.Errorf("got %+v, want debug waiting with the reason", got)
		}
		n.wantPhase(pod, "a container that is refused", v1.PodRunning)
	})
}
