package shutdown_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/shutdown"
)

// Critical pods end last, in the time that is kept for them.
func ExamplePlan() {
	web := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	critical := int32(2_000_001_000)
	dns := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Spec: v1.PodSpec{Priority: &critical}}
	for _, group := range shutdown.Plan([]*v1.Pod{dns, web}, 30*time.Second, 10*time.Second) {
		fmt.Println(group.Pods[0].Name, group.Within)
	}
	// Output:
	// web 20s
	// dns 10s
}
