package status

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// staticPod returns a version of a static pod and its mirror.
func staticPod(name, version string) (static, mirror *v1.Pod) {
	static = aPod(name)
	static.UID, static.ResourceVersion = types.UID(version), ""
	static.Annotations = map[string]string{kubetypes.ConfigSourceAnnotationKey: "file", kubetypes.ConfigHashAnnotationKey: version}
	mirror = aPod(name)
	mirror.UID = types.UID("mirror-" + version)
	mirror.Annotations = map[string]string{
		kubetypes.ConfigSourceAnnotationKey: "api", kubetypes.ConfigHashAnnotationKey: version, kubetypes.ConfigMirrorAnnotationKey: version,
	}
	return static, mirror
}

// The containers of a static pod end after its manifest is gone, and the mirror says how until the kubelet deletes it.
func TestStaticPodWithoutManifest_EndIsReported(t *testing.T) {
	n := newNode(t)
	static, mirror := staticPod("web", "1")
	n.pods.AddPod(static)
	n.pods.AddPod(mirror)
	client := fake.NewClientset(mirror)
	m := n.manager(client)
	ctx, cancel := context.WithCancel(t.Context())
	m.Start(ctx)
	m.SetPodStatus(logger, static, running("containerd://1"))
	n.pods.RemovePod(static)
	m.SetPodStatus(logger, static, succeeded("containerd://1"))
	if err := m.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := client.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
	if err != nil || got.Status.Phase != v1.PodSucceeded {
		t.Errorf("the mirror is %v, %v; want the end of the static pod", got.Status.Phase, err)
	}
	m.RemoveOrphanedStatuses(logger, map[types.UID]bool{})
	if _, ok := m.table.ByUID(static.UID); ok {
		t.Error("the static pod is kept although its status was removed")
	}
	cancel()
	closeJournal(t, m)
}

// While the containers of an earlier version end, its mirror has the name of the edited pod. The edited pod's status is for a
// mirror of its own.
func TestMirrorOfAnEarlierVersion_IsNotTheEditedPods(t *testing.T) {
	n := newNode(t)
	before, mirror := staticPod("web", "1")
	edited, next := staticPod("web", "2")
	n.pods.AddPod(before)
	n.pods.AddPod(mirror)
	table := newTable(n.pods)
	table.reported(before)
	n.pods.RemovePod(before)
	n.pods.AddPod(edited)
	if got, ok := table.MirrorOf(edited); ok {
		t.Errorf("the edited pod has the mirror %s", got.UID)
	}
	if got, ok := table.ByUID(before.UID); !ok {
		t.Error("the earlier version is not known any more")
	} else if got, ok := table.MirrorOf(got); !ok || got.UID != mirror.UID {
		t.Error("the earlier version has lost its mirror")
	}
	n.pods.RemovePod(mirror)
	n.pods.AddPod(next)
	if got, ok := table.MirrorOf(edited); !ok || got.UID != next.UID {
		t.Error("the edited pod has no mirror, although the table has it")
	}
}
