package volume

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldsPod is a pod with something in each field that can be referred to.
func fieldsPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "plain", Namespace: "default", UID: "plain-uid",
			Labels:      map[string]string{"app": "web", "a": "line\nbreak"},
			Annotations: map[string]string{"note": `a "quote"`},
		},
		Spec: v1.PodSpec{
			NodeName: "node-1", ServiceAccountName: "default",
			InitContainers: []v1.Container{{Name: "init", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m")},
			}}},
			Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Gi")},
			}}},
		},
	}
}

func TestFieldsOfThePod(t *testing.T) {
	fields := Fields{Pod: fieldsPod(), IPs: []string{"192.0.2.1", "2001:db8::1"}}
	for path, want := range map[string]string{
		"metadata.name": "plain", "metadata.namespace": "default", "metadata.uid": "plain-uid",
		"metadata.labels['app']": "web", "metadata.labels['none']": "", "metadata.annotations['none']": "",
		"spec.nodeName": "node-1", "spec.serviceAccountName": "default",
		"status.hostIP": "192.0.2.1", "status.podIP": "192.0.2.1",
		"status.hostIPs": "192.0.2.1,2001:db8::1", "status.podIPs": "192.0.2.1,2001:db8::1",
	} {
		if got, err := fields.Field(path); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"metadata.labels", "metadata.annotations", "status.phase", "spec"} {
		if got, err := fields.Field(path); err == nil {
			t.Errorf("%s in env: got %q, want an error", path, got)
		}
	}
	for path, want := range map[string]string{
		"metadata.labels":      "a=\"line\\nbreak\"\napp=\"web\"",
		"metadata.annotations": `note="a \"quote\""`,
		"metadata.name":        "plain",
	} {
		if got, err := fields.FileField(path); err != nil || got != want {
			t.Errorf("%s in a volume: got %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestResourcesOfAContainer(t *testing.T) {
	pod := fieldsPod()
	fields := Fields{Pod: pod, Container: &pod.Spec.Containers[0], Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}}
	for _, c := range []struct{ container, resource, divisor, want string }{
		{"", "requests.memory", "", "1073741824"},
		{"", "requests.memory", "1Mi", "1024"},
		{"", "limits.memory", "1Gi", "2"},
		{"", "limits.cpu", "", "4"},       // no limit: what the node has
		{"init", "requests.cpu", "", "2"}, // rounded up
		{"init", "requests.cpu", "1m", "1500"},
		{"", "requests.cpu", "", "0"},
	} {
		ref := &v1.ResourceFieldSelector{ContainerName: c.container, Resource: c.resource}
		if c.divisor != "" {
			ref.Divisor = resource.MustParse(c.divisor)
		}
		if got, err := fields.Resource(ref); err != nil || got != c.want {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	huge := &v1.ResourceFieldSelector{Resource: "requests.memory"}
	pod.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = resource.MustParse("9223372036854775807")
	if got, err := fields.Resource(huge); err != nil || got != "9223372036854775807" {
		t.Errorf("as much as can be: got %q, %v", got, err)
	}
	for _, ref := range []*v1.ResourceFieldSelector{
		{ContainerName: "another", Resource: "requests.cpu"},
		{Resource: "weights.cpu"},
	} {
		if got, err := fields.Resource(ref); err == nil {
			t.Errorf("%+v: got %q, want an error", ref, got)
		}
	}
}
