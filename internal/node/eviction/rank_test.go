package eviction

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/runtime"
)

const (
	mib            = 1 << 20
	systemCritical = 2_000_000_000
)

// pod makes a subject that uses and requests so many MiB of memory, and of disk.
func pod(name string, priority int32, used, requested uint64) subject {
	list := v1.ResourceList{}
	if requested > 0 {
		q := *resource.NewQuantity(int64(requested*mib), resource.BinarySI)
		list = v1.ResourceList{v1.ResourceMemory: q, v1.ResourceEphemeralStorage: q}
	}
	return subject{
		pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec:       v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: list}}}},
		},
		usage: &runtime.Usage{
			MemoryBytes: used * mib, DiskBytes: used * mib, Inodes: used, Processes: used,
			Containers: map[string]runtime.ContainerUsage{"main": {MemoryBytes: used * mib, DiskBytes: used * mib}},
		},
		requests: list,
	}
}

func unmeasured(name string, priority int32) subject {
	s := pod(name, priority, 0, 0)
	s.usage = nil
	return s
}

func TestRank(t *testing.T) {
	for _, c := range []struct {
		story  string
		signal Signal
		pods   []subject
		want   string
	}{
		{"most memory first", MemoryAvailable, []subject{pod("small", 0, 10, 0), pod("big", 0, 90, 0)}, "big small"},
		{"above requests first", MemoryAvailable, []subject{pod("within", 0, 500, 600), pod("above", 0, 20, 10)}, "above within"},
		{"above requests before low priority", MemoryAvailable, []subject{pod("low", -5, 10, 20), pod("high", 1000, 30, 20)}, "high low"},
		{"low priority before much memory", MemoryAvailable, []subject{pod("high", 1000, 90, 0), pod("low", 1, 10, 0)}, "low high"},
		{"relative to requests", MemoryAvailable, []subject{pod("asked", 0, 500, 450), pod("not", 0, 100, 0)}, "not asked"},
		{"within requests, by what is left", MemoryAvailable, []subject{pod("half", 0, 50, 100), pod("full", 0, 99, 100)}, "full half"},
		{"what is not measured first", MemoryAvailable, []subject{pod("big", 0, 900, 0), unmeasured("dark", 1000)}, "dark big"},
		{"disk", NodeFSAvailable, []subject{pod("within", 0, 500, 600), pod("above", 0, 20, 10), pod("more", 0, 30, 10)}, "more above within"},
		{"inodes have no requests", NodeFSInodesFree, []subject{pod("few", 0, 5, 0), pod("many", 0, 50, 500)}, "many few"},
		{"inodes: one that has none", NodeFSInodesFree, []subject{pod("none", -1, 0, 0), pod("some", 0, 1, 0)}, "some none"},
		{"processes by priority first", PIDAvailable, []subject{pod("high", 10, 900, 0), pod("low", 0, 5, 0)}, "low high"},
		{"processes", PIDAvailable, []subject{pod("few", 0, 5, 0), pod("many", 0, 50, 0)}, "many few"},
		{"equal pods keep their order", MemoryAvailable, []subject{pod("a", 0, 5, 0), pod("b", 0, 5, 0), pod("c", 0, 5, 0)}, "a b c"},
	} {
		rank(c.pods, c.signal)
		var names []string
		for _, s := range c.pods {
			names = append(names, s.pod.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.story, got, c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	seen := Observations{
		MemoryAvailable:  {Available: 90 * mib, Capacity: 1024 * mib},
		NodeFSInodesFree: {Available: 40, Capacity: 1000},
	}
	s := pod("web", 0, 300, 200)
	for _, c := range []struct {
		story     string
		subject   subject
		threshold Threshold
		want      string
	}{
		{"memory", s, Threshold{Signal: MemoryAvailable, Below: Amount{Number: 100 * mib}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container main was using 300Mi, request is 200Mi, has larger consumption of memory. "},
		{"inodes", s, Threshold{Signal: NodeFSInodesFree, Below: Amount{Share: 0.05}},
			"The node was low on resource: inodes. Threshold quantity: 50, available: 40. "},
		{"within its requests", pod("web", 0, 100, 200), Threshold{Signal: MemoryAvailable, Below: Amount{Number: 100 * mib}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "},
		{"not measured", unmeasured("web", 0), Threshold{Signal: MemoryAvailable, Below: Amount{Number: 100 * mib}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "},
	} {
		if got := describe(&c.subject, c.threshold, seen); got != c.want {
			t.Errorf("%s: got %q, want %q", c.story, got, c.want)
		}
	}
}
