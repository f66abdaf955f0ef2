package podstatus_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/podstatus"
)

func TestQOSClass(t *testing.T) {
	limited := func(request, limit v1.ResourceList) v1.Container {
		return v1.Container{Resources: v1.ResourceRequirements{Requests: request, Limits: limit}}
	}
	cpu := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	full := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")}
	for _, c := range []struct {
		story string
		pod   v1.Pod
		want  v1.PodQOSClass
	}{
		{"nothing asked for", v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{}}}}, v1.PodQOSBestEffort},
		{"requests only", v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{limited(cpu, nil)}}}, v1.PodQOSBurstable},
		{"limits are requests", v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{limited(full, full)}}}, v1.PodQOSGuaranteed},
		{"limits alone", v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{limited(nil, full)}}}, v1.PodQOSGuaranteed},
		{"no memory limit", v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{limited(full, cpu)}}}, v1.PodQOSBurstable},
		{"one of two", v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{limited(full, full), {}}}}, v1.PodQOSBurstable},
		{"by the pod itself", v1.Pod{Spec: v1.PodSpec{Resources: &v1.ResourceRequirements{Limits: full}, Containers: []v1.Container{{}}}}, v1.PodQOSGuaranteed},
		{"decided before", v1.Pod{Status: v1.PodStatus{QOSClass: v1.PodQOSBurstable}}, v1.PodQOSBurstable},
	} {
		if got := podstatus.QOSClass(&c.pod); got != c.want {
			t.Errorf("%s: got %s, want %s", c.story, got, c.want)
		}
	}
}
