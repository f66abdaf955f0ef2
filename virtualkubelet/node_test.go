package virtualkubelet

import (
	"context"
	"errors"
	"log/slog"
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/statustest"
)

// described is a provider that describes its Node and says whether it works.
type described struct {
	*cloud
	notify func(*v1.Node)

	mu    sync.Mutex
	pings int
	ping  func(context.Context) error
}

func (d *described) ConfigureNode(_ context.Context, node *v1.Node) {
	node.Labels["type"], node.Annotations = "virtual", map[string]string{"example.com/site": "north"}
	node.Spec.ProviderID = "cloud://node"
	node.Spec.Taints = []v1.Taint{{Key: "virtual-kubelet.io/provider", Value: "cloud", Effect: v1.TaintEffectNoSchedule}}
	node.Status.Capacity = v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), "example.com/gpu": resource.MustParse("8")}
	node.Status.NodeInfo = v1.NodeSystemInfo{OperatingSystem: "windows", Architecture: "arm64"}
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}, {Type: "Quota", Status: v1.ConditionTrue}}
	node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}}
}

func (d *described) NotifyNodeStatus(_ context.Context, notify func(*v1.Node)) { d.notify = notify }

func (d *described) Ping(ctx context.Context) error {
	d.mu.Lock()
	d.pings++
	ping := d.ping
	d.mu.Unlock()
	if ping == nil {
		return nil
	}
	return ping(ctx)
}

func (d *described) setPing(ping func(context.Context) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ping = ping
}

func (d *described) pinged() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pings
}

// nodeWorld is a whole node before an API server in memory.
type nodeWorld struct {
	*testing.T
	client kubernetes.Interface
}

// runNode runs a provider's node until the test ends, on a server that has some pods.
func runNode(t *testing.T, provider Provider, pods ...*v1.Pod) *nodeWorld {
	t.Helper()
	api := statustest.New()
	for _, pod := range pods {
		api.Put(pod)
	}
	client, err := kubernetes.NewForConfig(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	return runNodeOf(t, client, provider)
}

// runNodeOf runs a provider's node with a client until the test ends.
func runNodeOf(t *testing.T, client kubernetes.Interface, provider Provider) *nodeWorld {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Client: client, NodeName: "n", Provider: provider, Logger: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	w := &nodeWorld{T: t, client: client}
	w.after(time.Second)
	return w
}

func (w *nodeWorld) after(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func (w *nodeWorld) node() *v1.Node {
	w.Helper()
	node, err := w.client.CoreV1().Nodes().Get(w.Context(), "n", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return node
}

func (w *nodeWorld) wantReady(story string, want v1.ConditionStatus) {
	w.Helper()
	c := condition(w.node(), v1.NodeReady)
	if c.Status != want {
		w.Errorf("%s: the Node is Ready %s (%s: %s), want %s", story, c.Status, c.Reason, c.Message, want)
	}
}

func condition(node *v1.Node, of v1.NodeConditionType) v1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return v1.NodeCondition{}
}

func TestConfigureNode_DescribesTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runNode(t, &described{cloud: newCloud()})
		node := w.node()
		for what, got := range map[string]struct{ got, want string }{
			"label":                {node.Labels["type"], "virtual"},
			"label of the system":  {node.Labels[v1.LabelOSStable], "windows"},
			"label of the machine": {node.Labels[v1.LabelArchStable], "arm64"},
			"annotation":           {node.Annotations["example.com/site"], "north"},
			"provider ID":          {node.Spec.ProviderID, "cloud://node"},
			"CPUs":                 {node.Status.Capacity.Cpu().String(), "64"},
			"GPUs":                 {new(node.Status.Allocatable["example.com/gpu"]).String(), "8"},
			"condition":            {string(condition(node, "Quota").Status), "True"},
			"address":              {node.Status.Addresses[0].Address, "192.0.2.1"},
		} {
			if got.got != got.want {
				t.Errorf("%s of the Node: got %q, want %q", what, got.got, got.want)
			}
		}
		taints := map[string]bool{}
		for _, taint := range node.Spec.Taints {
			taints[taint.Key] = true
		}
		if !taints["virtual-kubelet.io/provider"] || !taints["statusd/embedded"] {
			t.Errorf("got taints %+v, want that of the provider beside the default one", node.Spec.Taints)
		}
		w.wantReady("at the start", v1.ConditionTrue)
	})
}

func TestPing_DecidesWhetherTheNodeIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &described{cloud: newCloud()}
		w := runNode(t, provider)
		provider.setPing(func(context.Context) error { return errors.New("no route to the cloud") })
		w.after(pingInterval + time.Second)
		w.wantReady("Ping fails", v1.ConditionFalse)
		if c := condition(w.node(), v1.NodeReady); c.Message != "the provider does not work: no route to the cloud" {
			t.Errorf("the Node is not Ready with the message %q, want the error of Ping", c.Message)
		}
		provider.setPing(nil)
		w.after(pingInterval + time.Second)
		w.wantReady("Ping succeeds again", v1.ConditionTrue)
		provider.setPing(func(context.Context) error { panic("nil client") })
		w.after(pingInterval + time.Second)
		w.wantReady("Ping panics", v1.ConditionFalse)
	})
}

// A Ping that ignores its context makes the Node not Ready, and is not called a second time meanwhile: a goroutine for each call would stay.
func TestPing_ThatHangs_IsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &described{cloud: newCloud()}
		w := runNode(t, provider)
		release := make(chan struct{})
		provider.setPing(func(context.Context) error { <-release; return nil })
		w.after(time.Minute)
		w.wantReady("Ping hangs", v1.ConditionFalse)
		before, goroutines := provider.pinged(), goruntime.NumGoroutine()
		w.after(time.Hour)
		if n := provider.pinged() - before; n != 0 {
			t.Errorf("Ping was called %d times more while a call hung", n)
		}
		if n := goruntime.NumGoroutine(); n > goroutines+2 {
			t.Errorf("%d goroutines became %d in an hour", goroutines, n)
		}
		provider.setPing(nil)
		close(release)
		w.after(2 * pingInterval)
		w.wantReady("Ping returns", v1.ConditionTrue)
	})
}

func TestNotifyNodeStatus_ChangesTheNodeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &described{cloud: newCloud()}
		w := runNode(t, provider)
		said := &v1.Node{Status: v1.NodeStatus{
			Capacity:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("128")},
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "QuotaSpent", Message: "no budget is left"}},
		}}
		provider.notify(said)
		said.Status.Capacity[v1.ResourceCPU] = resource.MustParse("1") // the provider's own copy
		synctest.Wait()
		if cpus := w.node().Status.Capacity.Cpu().String(); cpus != "128" {
			t.Errorf("the Node has %s CPUs, want the 128 that the provider said", cpus)
		}
		w.wantReady("the provider says that it is not", v1.ConditionFalse)
		provider.notify(&v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}})
		synctest.Wait()
		w.wantReady("the provider says that it is", v1.ConditionTrue)
		if cpus := w.node().Status.Capacity.Cpu().String(); cpus != "64" {
			t.Errorf("the Node has %s CPUs, want the 64 of ConfigureNode again", cpus)
		}
		provider.notify(nil)
		synctest.Wait()
		w.wantReady("a notification without a Node", v1.ConditionTrue)
	})
}
