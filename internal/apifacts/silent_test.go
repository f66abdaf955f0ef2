package apifacts_test

import (
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/apifacts"
)

// A node that is silent makes every sentence conditional: what the API says of its pods was true when it was last heard of.
func TestSilentNode_NoSentenceIsCertain(t *testing.T) {
	now := time.Date(2026, 3, 14, 9, 17, 29, 0, time.UTC)
	started, grace := true, int64(30)
	pod := func(name string, change func(*v1.Pod)) *v1.Pod {
		p := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u"},
			Spec:       v1.PodSpec{NodeName: "dead", Containers: []v1.Container{{Name: "app"}}},
			Status: v1.PodStatus{Phase: v1.PodRunning, StartTime: &metav1.Time{Time: now.Add(-2 * time.Hour)}, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
				ContainerStatuses: []v1.ContainerStatus{{Name: "app", Ready: true, Started: &started, ContainerID: "x://1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}},
		}
		change(p)
		return p
	}
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "dead"},
		Spec: coordination.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-77 * time.Minute)}}}
	unknown := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "dead"}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{
		{Type: v1.NodeReady, Status: v1.ConditionUnknown, LastHeartbeatTime: metav1.Time{Time: now.Add(-77 * time.Minute)}}}}}
	for by, object := range map[string]runtime.Object{"lease": lease, "condition": unknown} {
		for name, change := range map[string]func(*v1.Pod){
			"ready": func(*v1.Pod) {},
			"deleted": func(p *v1.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(29 * time.Second)}, &grace
			},
			"crash loop": func(p *v1.Pod) {
				p.Status.Conditions[0].Status = v1.ConditionFalse
				p.Status.ContainerStatuses[0] = v1.ContainerStatus{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
			},
			"starting": func(p *v1.Pod) { p.Status = v1.PodStatus{Phase: v1.PodPending} },
			"creating": func(p *v1.Pod) {
				p.Status.Phase = v1.PodPending
				p.Status.Conditions[0].Status = v1.ConditionFalse
				p.Status.ContainerStatuses[0] = v1.ContainerStatus{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
			},
		} {
			p := pod("on-dead", change)
			f, err := apifacts.Collect(t.Context(), fake.NewClientset(p, object), "default", "on-dead", now)
			if err != nil {
				t.Fatal(err)
			}
			got := explain.Pod(f).Sentence(time.UTC)
			if !strings.Contains(got, `node "dead" has not been heard of for 1 h 17 min`) || !strings.Contains(got, "kubectl describe node dead") {
				t.Errorf("%s, %s: the node is not named: %s", by, name, got)
			}
			for _, certain := range []string{"is Ready since", "is Ready.", "was asked to stop", "killed in", "starts again", "Next:"} {
				if strings.Contains(got, certain) {
					t.Errorf("%s, %s: %q is certain: %s", by, name, certain, got)
				}
			}
		}
	}
}

// A node that has registered and never reported is silent since it was created.
func TestNodeThatNeverReported_IsSilent(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p"}, Spec: v1.PodSpec{NodeName: "n"},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}}
	for name, conditions := range map[string][]v1.NodeCondition{
		"no condition": nil, "given up": {{Type: v1.NodeReady, Status: v1.ConditionUnknown}},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: metav1.Time{Time: now.Add(-5 * time.Minute)}}, Status: v1.NodeStatus{Conditions: conditions}}
		f, err := apifacts.Collect(t.Context(), fake.NewClientset(pod, node), "d", "p", now)
		if err != nil {
			t.Fatal(err)
		}
		if got := explain.Pod(f).Sentence(time.UTC); strings.Contains(got, "is Ready") || !strings.Contains(got, "has not been heard of for 5 min") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
