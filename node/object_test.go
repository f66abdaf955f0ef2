package node

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/fake"
)

func TestNodeVersionSaysStatusdAndParses(t *testing.T) {
	for given, want := range map[string]string{
		"v0.1.0":        "v1.36.3-statusd.0.1.0",
		"":              "v1.36.3-statusd.dev",
		"0.2.0+g1234":   "v1.36.3-statusd.0.2.0-g1234",
		"v0.3.0-rc.1_x": "v1.36.3-statusd.0.3.0-rc.1-x",
	} {
		got := kubeletVersion(given)
		if got != want {
			t.Errorf("version %q: got %q, want %q", given, got, want)
		}
		if _, err := version.ParseSemantic(got); err != nil {
			t.Errorf("version %q: %v: tools that judge version skew could not read it", given, err)
		}
	}
}

func TestAllocatableKeepsBackReservationsAndThresholds(t *testing.T) {
	o := Options{Reserved: v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("1Gi")}}
	o.setDefaults()
	s := o.status(healthy())
	for name, want := range map[v1.ResourceName]string{
		v1.ResourceCPU:              "1500m",
		v1.ResourceMemory:           "2972Mi", // 4Gi - 1Gi reserved - 100Mi threshold
		v1.ResourceEphemeralStorage: "90Gi",
		v1.ResourcePods:             "110",
	} {
		got, want := s.Allocatable[name], resource.MustParse(want)
		if got.Cmp(want) != 0 {
			t.Errorf("%s: got %s, want %s", name, got.String(), want.String())
		}
	}
	o.Reserved = v1.ResourceList{v1.ResourceCPU: resource.MustParse("10")}
	if got := o.status(healthy()).Allocatable[v1.ResourceCPU]; !got.IsZero() {
		t.Errorf("more reserved than there is: got %s, want 0", got.String())
	}
}

func TestOptionsAreRefusedWithAReason(t *testing.T) {
	good := func() Options { return Options{Client: fake.NewClientset(), Name: "n"} }
	for want, alter := range map[string]func(*Options){
		"no client":                             func(o *Options) { o.Client = nil },
		`name "N"`:                              func(o *Options) { o.Name = "N" },
		"node-role.kubernetes.io":               func(o *Options) { o.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} },
		"a valid label must be an empty string": func(o *Options) { o.Labels = map[string]string{"a": "not valid!"} },
		"want KEY[=VALUE]:EFFECT":               func(o *Options) { o.Taints = []v1.Taint{{Key: "a", Effect: "Maybe"}} },
		"is not an IP address":                  func(o *Options) { o.Addresses = []string{"localhost"} },
		`reserved cpu: "-1": want`:              func(o *Options) { o.Reserved = v1.ResourceList{v1.ResourceCPU: resource.MustParse("-1")} },
		"must not be negative":                  func(o *Options) { o.MaxPods = -1 },
		"whole seconds":                         func(o *Options) { o.Lease = 1500 * time.Millisecond },
		"want a share":                          func(o *Options) { o.Thresholds = Thresholds{DiskAvailable: 10} },
	} {
		o := good()
		alter(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	o := good()
	o.Labels = map[string]string{"node.kubernetes.io/pool": "a", "topology.kubernetes.io/zone": "z", "example.com/x": "y", "plain": "p"}
	o.Taints = []v1.Taint{{Key: "example.com/dedicated", Value: "x", Effect: v1.TaintEffectNoSchedule}}
	if _, err := New(o); err != nil {
		t.Errorf("good options are refused: %v", err)
	}
}

func healthyQuantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

// Configure has the last word on the Node, and its conditions keep their transition times.
func TestConfigure_ChangesTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sick atomic.Bool
		s := newNodeStory(t, func(o *Options) {
			o.Configure = func(n *v1.Node) {
				n.Labels["example.com/zone"] = "moon"
				n.Annotations = map[string]string{"example.com/owner": "lab"}
				n.Spec.ProviderID = "moon://1"
				n.Status.Capacity["example.com/gpu"] = resource.MustParse("8")
				n.Status.NodeInfo.Architecture = "riscv64"
				healthy := v1.ConditionTrue
				if sick.Load() {
					healthy = v1.ConditionFalse
				}
				n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: "example.com/Healthy", Status: healthy})
			}
		})
		defer s.run()()
		synctest.Wait()
		began := s.condition("example.com/Healthy").LastTransitionTime
		node := s.get()
		if gpus := node.Status.Capacity["example.com/gpu"]; gpus.Value() != 8 || node.Spec.ProviderID != "moon://1" || node.Labels["example.com/zone"] != "moon" ||
			node.Annotations["example.com/owner"] != "lab" || node.Status.NodeInfo.Architecture != "riscv64" {
			t.Errorf("the Node is %+v %+v %+v", node.ObjectMeta, node.Spec, node.Status)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if c := s.condition("example.com/Healthy"); !c.LastTransitionTime.Equal(&began) {
			t.Errorf("the transition time moved from %v to %v without a change", began, c.LastTransitionTime)
		}
		sick.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := s.condition("example.com/Healthy"); c.Status != v1.ConditionFalse || c.LastTransitionTime.Equal(&began) {
			t.Errorf("the condition is %+v after it changed", c)
		}
	})
}
