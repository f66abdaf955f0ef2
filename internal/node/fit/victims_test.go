package fit_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/fit"
)

// holder is a pod that has so many milli-CPU.
func holder(name string, class v1.PodQOSClass, milli int64) *v1.Pod {
	list := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: list}}}},
		Status:     v1.PodStatus{QOSClass: class},
	}
}

func TestVictims(t *testing.T) {
	best, burst, guaranteed := v1.PodQOSBestEffort, v1.PodQOSBurstable, v1.PodQOSGuaranteed
	system := holder("system", burst, 900)
	system.Spec.Priority = new(int32(2_000_000_000))
	critical := &v1.Pod{Spec: v1.PodSpec{Priority: new(int32(2_000_001_000))}}
	static := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "file"}}}
	for _, c := range []struct {
		story  string
		pod    *v1.Pod
		active []*v1.Pod
		need   int64
		want   string // empty: there are none
	}{
		{"the smallest that is enough", critical, []*v1.Pod{holder("a", burst, 100), holder("b", burst, 500), holder("c", burst, 300)}, 200, "c"},
		{"as few as possible", critical, []*v1.Pod{holder("a", burst, 100), holder("b", burst, 300), holder("c", burst, 200)}, 400, "b a"},
		{"burstable before guaranteed", critical, []*v1.Pod{holder("a", guaranteed, 500), holder("b", burst, 300), holder("c", burst, 300)}, 500, "b c"},
		{"guaranteed where it has to be", critical, []*v1.Pod{holder("a", guaranteed, 500), holder("b", burst, 300)}, 700, "b a"},
		{"not enough", critical, []*v1.Pod{holder("a", burst, 100)}, 200, ""},
		{"a critical one of lower priority", critical, []*v1.Pod{system}, 200, "system"},
		{"a static pod has no priority over critical ones", static, []*v1.Pod{system}, 200, ""},
		{"one that holds nothing stays", critical, []*v1.Pod{holder("a", best, 0), holder("b", burst, 300)}, 200, "b"},
	} {
		got := fit.Victims(c.pod, c.active, &fit.Shortage{Resource: v1.ResourceCPU, Requested: c.need, Used: 1000, Capacity: 1000})
		var names []string
		for _, pod := range got {
			names = append(names, pod.Name)
		}
		slices.SortFunc(names, func(a, b string) int { // as wanted: the order within is not promised
			return strings.Index(c.want, a) - strings.Index(c.want, b)
		})
		if strings.Join(names, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.story, names, c.want)
		}
	}
	if got := fit.Victims(critical, []*v1.Pod{holder("a", best, 0)}, &fit.Shortage{Resource: v1.ResourcePods, Requested: 1, Used: 5, Capacity: 5}); len(got) != 1 {
		t.Errorf("for lack of pods: got %v, want one to leave", got)
	}
}

// The active pods of a node come in no order.
func TestVictimsOfOneSizeAreTheSameInAnyOrder(t *testing.T) {
	critical := &v1.Pod{Spec: v1.PodSpec{Priority: new(int32(2_000_001_000))}}
	active := []*v1.Pod{holder("a", v1.PodQOSBurstable, 300), holder("b", v1.PodQOSBurstable, 300), holder("c", v1.PodQOSBurstable, 300)}
	for range 2 {
		got := fit.Victims(critical, active, &fit.Shortage{Resource: v1.ResourceCPU, Requested: 200, Used: 1000, Capacity: 1000})
		if len(got) != 1 || got[0].Name != "a" {
			t.Errorf("got %v, want a", got)
		}
		slices.Reverse(active)
	}
}
