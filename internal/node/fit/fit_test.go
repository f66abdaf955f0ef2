package fit_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/fit"
)

func resources(cpu, memory string) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu != "" {
		list[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

func asking(name, cpu, memory string) v1.Container {
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: resources(cpu, memory)}}
}

func TestCheck(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Labels: map[string]string{"zone": "a", "cores": "8"}},
		Spec: v1.NodeSpec{Taints: []v1.Taint{
			{Key: "gpu", Value: "yes", Effect: v1.TaintEffectNoExecute},
			{Key: "full", Effect: v1.TaintEffectNoSchedule},
		}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourcePods: resource.MustParse("2"),
		}},
	}
	tolerant := []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}}
	other := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1.PodSpec{Containers: []v1.Container{{
		Name: "a", Resources: v1.ResourceRequirements{Requests: resources("500m", "512Mi")},
		Ports: []v1.ContainerPort{{HostPort: 80, Protocol: v1.ProtocolTCP}},
	}}}}
	affinity := func(r ...v1.NodeSelectorRequirement) *v1.Affinity {
		return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{}, {MatchExpressions: r}},
		}}}
	}
	for _, c := range []struct {
		story   string
		spec    v1.PodSpec
		active  []*v1.Pod
		reason  string
		message string
	}{
		{"fits", v1.PodSpec{Tolerations: tolerant, Containers: []v1.Container{asking("a", "1500m", "512Mi")}}, []*v1.Pod{other}, "", ""},
		{"cpu", v1.PodSpec{Tolerations: tolerant, Containers: []v1.Container{asking("a", "1501m", "")}}, []*v1.Pod{other}, "OutOfcpu",
			"Node didn't have enough resource: cpu, requested: 1501, used: 500, capacity: 2000"},
		{"memory", v1.PodSpec{Tolerations: tolerant, Containers: []v1.Container{asking("a", "", "513Mi")}}, []*v1.Pod{other}, "OutOfmemory",
			"Node didn't have enough resource: memory, requested: 537919488, used: 536870912, capacity: 1073741824"},
		{"pods", v1.PodSpec{Tolerations: tolerant}, []*v1.Pod{other, other}, "OutOfpods",
			"Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"},
		{"selector", v1.PodSpec{Tolerations: tolerant, NodeSelector: map[string]string{"zone": "b"}}, nil, "NodeAffinity",
			"Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{"selector that matches", v1.PodSpec{Tolerations: tolerant, NodeSelector: map[string]string{"zone": "a"}}, nil, "", ""},
		{"affinity", v1.PodSpec{Tolerations: tolerant, Affinity: affinity(v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpNotIn, Values: []string{"a"}})}, nil, "NodeAffinity",
			"Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{"affinity that matches", v1.PodSpec{Tolerations: tolerant, Affinity: affinity(
			v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"a", "b"}},
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpGt, Values: []string{"7"}},
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpLt, Values: []string{"9"}},
			v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpExists},
			v1.NodeSelectorRequirement{Key: "old", Operator: v1.NodeSelectorOpDoesNotExist},
		)}, nil, "", ""},
		{"ports", v1.PodSpec{Tolerations: tolerant, Containers: other.Spec.Containers}, []*v1.Pod{other}, "NodePorts",
			"Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: pod shop/web has 80"},
		{"taint", v1.PodSpec{}, nil, "TaintToleration",
			"Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{"taint of another value", v1.PodSpec{Tolerations: []v1.Toleration{{Key: "gpu", Value: "no"}}}, nil, "TaintToleration",
			"Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{"tolerates everything", v1.PodSpec{Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}}}, nil, "", ""},
		{"tolerates the value", v1.PodSpec{Tolerations: []v1.Toleration{{Key: "gpu", Value: "yes", Effect: v1.TaintEffectNoExecute}}}, nil, "", ""},
	} {
		t.Run(c.story, func(t *testing.T) {
			got := fit.Rejection{}
			if r := fit.Check(node, &v1.Pod{Spec: c.spec}, c.active); r != nil {
				got = *r
			}
			if got.Reason != c.reason || got.Message != c.message {
				t.Errorf("got %q: %q\nwant %q: %q", got.Reason, got.Message, c.reason, c.message)
			}
		})
	}
}

func TestAStaticPodIgnoresTaints(t *testing.T) {
	node := &v1.Node{Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoExecute}}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "file"}}}
	if r := fit.Check(node, pod, nil); r != nil {
		t.Errorf("got %+v, want it to fit", r)
	}
}

func TestRequests(t *testing.T) {
	beside := func(c v1.Container) v1.Container {
		c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		return c
	}
	for _, c := range []struct {
		story string
		spec  v1.PodSpec
		cpu   string
	}{
		{"containers add up", v1.PodSpec{Containers: []v1.Container{asking("a", "1", ""), asking("b", "500m", "")}}, "1500m"},
		{"an init container alone", v1.PodSpec{InitContainers: []v1.Container{asking("x", "2", "")}, Containers: []v1.Container{asking("a", "1", "")}}, "2"},
		{"sidecars count all along", v1.PodSpec{
			InitContainers: []v1.Container{beside(asking("s", "300m", "")), asking("x", "800m", "")},
			Containers:     []v1.Container{asking("a", "500m", "")},
		}, "1100m"},
		{"a sidecar after the init container", v1.PodSpec{
			InitContainers: []v1.Container{asking("x", "700m", ""), beside(asking("s", "300m", ""))},
			Containers:     []v1.Container{asking("a", "500m", "")},
		}, "800m"},
		{"the pod's own wish and overhead", v1.PodSpec{
			Resources: &v1.ResourceRequirements{Requests: resources("3", "")}, Overhead: resources("100m", ""),
			Containers: []v1.Container{asking("a", "1", "")},
		}, "3100m"},
	} {
		want := resource.MustParse(c.cpu)
		if got := fit.Requests(&v1.Pod{Spec: c.spec})[v1.ResourceCPU]; got.Cmp(want) != 0 {
			t.Errorf("%s: got %s, want %s", c.story, got.String(), c.cpu)
		}
	}
}

func TestLimits(t *testing.T) {
	limited := func(name, memory string) v1.Container {
		return v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: resources("1", "1Gi"), Limits: resources("", memory)}}
	}
	sidecar := limited("s", "100Mi")
	sidecar.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	for _, c := range []struct {
		story string
		spec  v1.PodSpec
		want  string
	}{
		{"containers add up", v1.PodSpec{Containers: []v1.Container{limited("a", "1Gi"), limited("b", "1Gi"), {Name: "c"}}}, "2Gi"},
		{"an init container beside a sidecar", v1.PodSpec{
			InitContainers: []v1.Container{sidecar, limited("x", "500Mi")}, Containers: []v1.Container{limited("a", "200Mi")},
		}, "600Mi"},
		{"the pod's own limit", v1.PodSpec{
			Resources: &v1.ResourceRequirements{Limits: resources("", "64Mi")}, Containers: []v1.Container{limited("a", "1Gi")},
		}, "64Mi"},
		{"overhead", v1.PodSpec{Overhead: resources("1", "10Mi"), Containers: []v1.Container{limited("a", "20Mi")}}, "30Mi"},
	} {
		want := resource.MustParse(c.want)
		got := fit.Limits(&v1.Pod{Spec: c.spec})
		if memory := got[v1.ResourceMemory]; memory.Cmp(want) != 0 {
			t.Errorf("%s: got %s, want %s", c.story, memory.String(), c.want)
		}
		if cpu, limited := got[v1.ResourceCPU]; limited {
			t.Errorf("%s: got a limit of %s CPU, want none", c.story, cpu.String())
		}
	}
}

func TestPortsOfContainersAreThoseOfTheMachineWhereTheyAreShared(t *testing.T) {
	serving := func(port, hostPort int32, protocol v1.Protocol) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Ports: []v1.ContainerPort{
			{ContainerPort: port, HostPort: hostPort, Protocol: protocol},
		}}}}}
	}
	initOnly := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "i", Ports: []v1.ContainerPort{{HostPort: 80}}}}}}
	for _, c := range []struct {
		story      string
		pod, other *v1.Pod
		fits       bool
	}{
		{"ports of containers", serving(80, 0, ""), serving(80, 0, ""), true},
		{"ports of the machine", serving(80, 80, ""), serving(80, 80, ""), false},
		{"a protocol that is left out is TCP", serving(80, 80, ""), serving(80, 80, v1.ProtocolTCP), false},
		{"another protocol", serving(80, 80, v1.ProtocolUDP), serving(80, 80, v1.ProtocolTCP), true},
		{"another port", serving(80, 80, ""), serving(81, 81, ""), true},
		{"hostPort against containerPort", serving(80, 80, ""), serving(80, 0, ""), true},
		{"an init container gives its ports back", initOnly, serving(80, 80, ""), true},
	} {
		got := fit.Check(&v1.Node{}, c.pod, []*v1.Pod{c.other})
		if (got == nil) != c.fits {
			t.Errorf("%s: got %+v, want it to fit: %v", c.story, got, c.fits)
		}
		if got != nil && got.Reason != fit.ReasonNodePorts {
			t.Errorf("%s: got reason %s, want %s", c.story, got.Reason, fit.ReasonNodePorts)
		}
	}
}

// Resources beyond cpu, memory and storage are counted as the kubelet counts them.
func TestExtendedResourcesAndHugePages(t *testing.T) {
	const gpu, huge = v1.ResourceName("example.com/gpu"), v1.ResourceName("hugepages-2Mi")
	node := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{gpu: resource.MustParse("1"), huge: resource.MustParse("64Mi")}}}
	wanting := func(name v1.ResourceName, quantity string) *v1.Pod {
		list := v1.ResourceList{name: resource.MustParse(quantity)}
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Resources: v1.ResourceRequirements{Requests: list, Limits: list}}}}}
	}
	for _, c := range []struct {
		story           string
		pod             *v1.Pod
		active          []*v1.Pod
		reason, message string
	}{
		{"the one GPU is free", wanting(gpu, "1"), nil, "", ""},
		{"the one GPU is taken", wanting(gpu, "1"), []*v1.Pod{wanting(gpu, "1")}, "OutOfexample.com/gpu",
			"Node didn't have enough resource: example.com/gpu, requested: 1, used: 1, capacity: 1"},
		{"a resource that the node does not list", wanting("example.com/fpga", "1"), nil, "", ""},
		{"huge pages", wanting(huge, "32Mi"), []*v1.Pod{wanting(huge, "32Mi")}, "", ""},
		{"too many huge pages", wanting(huge, "34Mi"), []*v1.Pod{wanting(huge, "32Mi")}, "OutOfhugepages-2Mi",
			"Node didn't have enough resource: hugepages-2Mi, requested: 35651584, used: 33554432, capacity: 67108864"},
		{"huge pages of a size that the node does not list", wanting("hugepages-1Gi", "1Gi"), nil, "OutOfhugepages-1Gi",
			"Node didn't have enough resource: hugepages-1Gi, requested: 1073741824, used: 0, capacity: 0"},
	} {
		got := fit.Rejection{}
		if r := fit.Check(node, c.pod, c.active); r != nil {
			got = *r
		}
		if got.Reason != c.reason || got.Message != c.message {
			t.Errorf("%s: got %q: %q, want %q: %q", c.story, got.Reason, got.Message, c.reason, c.message)
		}
	}
}

// One port at two addresses of the machine is two ports, as for the scheduler.
func TestHostPortsAtDifferentAddresses(t *testing.T) {
	at := func(ip string) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Ports: []v1.ContainerPort{{HostPort: 80, HostIP: ip}}}}}}
	}
	for _, c := range []struct {
		a, b string
		fits bool
	}{
		{"10.0.0.1", "10.0.0.2", true},
		{"10.0.0.1", "10.0.0.1", false},
		{"10.0.0.1", "", false},
		{"", "10.0.0.1", false},
		{"0.0.0.0", "10.0.0.1", false},
		{"", "0.0.0.0", false},
	} {
		if got := fit.Check(&v1.Node{}, at(c.a), []*v1.Pod{at(c.b)}); (got == nil) != c.fits {
			t.Errorf("port 80 at %q beside %q: got %+v, want it to fit: %v", c.a, c.b, got, c.fits)
		}
	}
}
