package repair_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/repair"
)

// A plan is a pure function of a report. Nothing is allowed by default.
func ExamplePlan() {
	f := orphan().facts
	fmt.Println(len(repair.Plan(report(f), repair.Policy{}, nil, f.Now)))
	for _, s := range repair.Plan(report(f), repair.Policy{Kinds: []audit.Kind{audit.ContainerWithoutPod}}, nil, f.Now) {
		fmt.Println(s.Why)
	}
	// Output:
	// 0
	// The containers "appc1", "appc2" of default/web run, but neither the API nor the kubelet has such a pod.
}
