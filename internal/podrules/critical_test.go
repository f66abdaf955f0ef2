package podrules

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestIsCritical(t *testing.T) {
	with := func(priority int32, annotation, value string) *v1.Pod {
		pod := &v1.Pod{Spec: v1.PodSpec{Priority: &priority}}
		if annotation != "" {
			pod.Annotations = map[string]string{annotation: value}
		}
		return pod
	}
	stored := with(0, SourceAnnotation, "file")
	stored.ResourceVersion = "1"
	for _, c := range []struct {
		story string
		pod   *v1.Pod
		want  bool
	}{
		{"no priority", &v1.Pod{}, false},
		{"ordinary", with(1_000_000_000, "", ""), false},
		{"just below the system", with(systemCritical-1, "", ""), false},
		{"of the system", with(systemCritical, "", ""), true},
		{"static", with(0, SourceAnnotation, "file"), true},
		{"of the API with the annotation of a static one", stored, false},
		{"mirror", with(0, v1.MirrorPodAnnotationKey, "hash"), true},
	} {
		if got := IsCritical(c.pod); got != c.want {
			t.Errorf("%s: got %v, want %v", c.story, got, c.want)
		}
	}
}
