package run

import (
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// Every local user can read /pods: nothing in it holds what containers are given. kubectl apply
// keeps whole manifests in an annotation, and so may others.
func TestPodsShowNoSecrets(t *testing.T) {
	a, _ := started(t, testConfig(t, "discreet"))
	awaitReady(t, a, "sleeper-discreet")
	const secret = "hunter2"
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "web", Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{
				v1.LastAppliedConfigAnnotation: `{"spec":{"containers":[{"env":[{"name":"PASSWORD","value":"` + secret + `"}]}]}}`,
				"example.com/note":             secret, podstatus.SourceAnnotation: "api",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: secret}},
		},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "main", Image: "host", Command: []string{secret}, Args: []string{secret}, Env: []v1.EnvVar{{Name: "PASSWORD", Value: secret}},
		}}},
	}
	a.node.Table.Set(pod)
	code, body := get(t, a, "/pods")
	if code != http.StatusOK || strings.Contains(body, secret) || !strings.Contains(body, `"app":"web"`) || !strings.Contains(body, `"kubernetes.io/config.source":"api"`) {
		t.Errorf("got %d %s, want the pod without what its container is given", code, body)
	}
}
