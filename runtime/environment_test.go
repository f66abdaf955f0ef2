package runtime_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/runtime"
)

// A value may refer to the pod and to values before it.
func ExampleEnvironment() {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	container := &v1.Container{Env: []v1.EnvVar{
		{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "NODE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.hostIP"}}},
		{Name: "GREETING", Value: "$(POD) at $(NODE), $$(NODE), $(NOBODY)"},
	}}
	env, err := runtime.Environment{IPs: []string{"10.0.0.1"}, HostIPs: []string{"192.0.2.1"}}.Resolve(context.Background(), pod, container, v1.EnvVar{Name: "HOME", Value: "/"})
	fmt.Println(err)
	for _, v := range env {
		fmt.Println(v.Name + "=" + v.Value)
	}
	// Output:
	// <nil>
	// HOME=/
	// POD=web
	// NODE=192.0.2.1
	// GREETING=web at 192.0.2.1, $(NODE), $(NOBODY)
}
