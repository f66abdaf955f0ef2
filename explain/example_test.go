package explain_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
)

func ExamplePod() {
	noon := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1.PodSpec{NodeName: "n1", ReadinessGates: []v1.PodReadinessGate{{ConditionType: "lb/registered"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{
			{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))},
		}},
	}
	e := explain.Pod(explain.Facts{Now: noon, Pod: pod})
	fmt.Println(e.State, e.Roots()[0].Code)
	fmt.Println(e.Sentence(time.UTC))
	// Output:
	// NotReady ReadinessGateNeverSet
	// Pod shop/web is not Ready since 11:59:00, because readiness gate "lb/registered" was never set. To do: check the controller that is to set the condition "lb/registered" (kubectl get pod -n shop web -o yaml --show-managed-fields).
}
