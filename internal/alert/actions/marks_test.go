package actions

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A taint of the same key and effect that is not ours is neither replaced nor, later, removed.
func TestATaintOfAnotherIsNotReplaced(t *testing.T) {
	client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "dedicated", Value: "db", Effect: v1.TaintEffectNoSchedule}}}})
	marks := NodeMarks{Client: client, Node: "n"}
	changed, err := marks.Set(t.Context(), "dedicated=broken:NoSchedule")
	if refused := (*RefusedError)(nil); changed || !errors.As(err, &refused) {
		t.Errorf("got %v, %v", changed, err)
	}
	if changed, err := marks.Set(t.Context(), "dedicated=broken:NoExecute"); !changed || err != nil {
		t.Errorf("another effect: got %v, %v", changed, err)
	}
	for _, mark := range []string{"dedicated=broken:NoSchedule", "dedicated=broken:NoExecute"} {
		if err := marks.Unset(t.Context(), mark); err != nil {
			t.Error(err)
		}
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Value != "db" {
		t.Errorf("got %+v, %v", node.Spec.Taints, err)
	}
}
