package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// nodeStory is a Node on a fake API that keeps objects, gives nodes UIDs, and says what it was asked.
type nodeStory struct {
	t      *testing.T
	client *fake.Clientset
	node   *Node

	mu       sync.Mutex // guards what follows
	reading  Reading
	unread   error
	notReady error
	down     error // what every request answers, if not nil
	uids     int
	asked    []string // writes of nodes
	leases   []string // writes of leases, which another goroutine makes
}

func newNodeStory(t *testing.T, alter func(*Options), existing ...runtime.Object) *nodeStory {
	s := &nodeStory{t: t, client: fake.NewClientset(existing...), reading: healthy()}
	s.client.PrependReactor("*", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		what := strings.TrimSuffix(a.GetVerb()+" "+a.GetResource().Resource+"/"+a.GetSubresource(), "/")
		switch {
		case a.GetVerb() == "get", a.GetVerb() == "list":
		case a.GetResource().Resource == "leases":
			s.leases = append(s.leases, a.GetVerb())
		default:
			s.asked = append(s.asked, what)
		}
		if create, ok := a.(k8stesting.CreateAction); ok && s.down == nil {
			if node, ok := create.GetObject().(*v1.Node); ok {
				s.uids++
				node.UID = types.UID(fmt.Sprintf("node-%d", s.uids))
			}
		}
		return s.down != nil, nil, s.down
	})
	o := Options{
		Client: s.client, Name: "n", Version: "v0.1.0", RuntimeVersion: "process://1", Logger: slog.New(slog.DiscardHandler),
		Read:  func() (Reading, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.reading, s.unread },
		Ready: func() error { s.mu.Lock(); defer s.mu.Unlock(); return s.notReady },
	}
	if alter != nil {
		alter(&o)
	}
	node, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.node = node
	return s
}

func (s *nodeStory) run() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.node.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("Run returned %v, want nil", err)
		}
	}
}

func (s *nodeStory) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// take returns what the API was asked to write to nodes since the last call.
func (s *nodeStory) take() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := strings.Join(s.asked, "; ")
	s.asked = nil
	return asked
}

// takeLeases returns what the API was asked to do with leases since the last call.
func (s *nodeStory) takeLeases() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.leases
	s.leases = nil
	return asked
}

func (s *nodeStory) expect(when, want string) {
	s.t.Helper()
	if got := s.take(); got != want {
		s.t.Errorf("%s: asked the API to %q, want %q", when, got, want)
	}
}

func (s *nodeStory) get() *v1.Node {
	s.t.Helper()
	obj, err := s.client.Tracker().Get(v1.SchemeGroupVersion.WithResource("nodes"), "", "n")
	if err != nil {
		s.t.Fatal(err)
	}
	return obj.(*v1.Node)
}

func (s *nodeStory) condition(kind v1.NodeConditionType) v1.NodeCondition {
	s.t.Helper()
	c := find(s.get().Status.Conditions, kind)
	if c == nil {
		s.t.Fatalf("the node has no condition %s", kind)
	}
	return *c
}

func TestNodeIsRegisteredAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, func(o *Options) {
			o.Labels = map[string]string{"example.com/rack": "7"}
			o.Taints = []v1.Taint{{Key: "example.com/dedicated", Effect: v1.TaintEffectNoSchedule}}
		})
		if uid := s.node.UID(); uid != "" {
			t.Errorf("UID %q before registration, want none", uid)
		}
		defer s.run()()
		s.expect("at start", "create nodes")
		node := s.get()
		if s.node.UID() != node.UID {
			t.Errorf("got UID %s, want %s", s.node.UID(), node.UID)
		}
		for key, want := range map[string]string{"example.com/rack": "7", v1.LabelHostname: "n", v1.LabelOSStable: "linux"} {
			if got := node.Labels[key]; got != want {
				t.Errorf("label %s: got %q, want %q", key, got, want)
			}
		}
		if len(node.Spec.Taints) != 1 {
			t.Errorf("got taints %v, want the configured one", node.Spec.Taints)
		}
		if got := fmt.Sprint(node.Status.Addresses); got != "[{InternalIP 192.0.2.1} {InternalIP 2001:db8::1} {Hostname n}]" {
			t.Errorf("got addresses %s", got)
		}
		if info := node.Status.NodeInfo; info.KubeletVersion != "v1.36.3-statusd.0.1.0" || info.ContainerRuntimeVersion != "process://1" {
			t.Errorf("got node info %+v", info)
		}
		if c := s.condition(v1.NodeReady); c.Status != v1.ConditionTrue || c.Reason != "KubeletReady" {
			t.Errorf("got Ready %+v, want True", c)
		}

		time.Sleep(4 * time.Minute)
		s.expect("nothing changes", "")
		time.Sleep(time.Minute)
		s.expect("five minutes are over", "patch nodes/status")
		if age := time.Since(s.condition(v1.NodeReady).LastHeartbeatTime.Time); age > 10*time.Second {
			t.Errorf("heartbeat is %v old", age)
		}

		s.change(func() { s.notReady = errors.New("runtime is down") })
		time.Sleep(10 * time.Second)
		s.expect("not ready any more", "patch nodes/status")
		if c := s.condition(v1.NodeReady); c.Status != v1.ConditionFalse || c.Message != "runtime is down" {
			t.Errorf("got Ready %+v, want False because the runtime is down", c)
		}
	})
}

func TestLeaseIsRenewedEveryTenSecondsAndOwnedByTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil)
		defer s.run()()
		time.Sleep(10 * time.Minute)
		asked := s.takeLeases()
		if n := len(asked) - 1; asked[0] != "create" || n < 57 || n > 60 || slices.Contains(asked[1:], "create") {
			t.Errorf("got %v, want one creation and then, in ten minutes, a renewal in 10 to 10.4 seconds", asked)
		}
		lease, err := s.client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != s.node.UID() || *lease.Spec.LeaseDurationSeconds != 40 || *lease.Spec.HolderIdentity != "n" {
			t.Errorf("got lease %+v", lease)
		}
		if age := time.Since(lease.Spec.RenewTime.Time); age > 11*time.Second {
			t.Errorf("lease is %v old", age)
		}
		if age := time.Since(s.node.LeaseRenewed()); age > 11*time.Second {
			t.Errorf("LeaseRenewed says %v ago", age)
		}

		if err := s.client.CoordinationV1().Leases("kube-node-lease").Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if got := s.takeLeases(); !slices.Contains(got, "create") {
			t.Errorf("the lease was deleted, and the API was only asked to %q", got)
		}
	})
}

func TestExistingNodeIsAdoptedAndForeignFieldsStay(t *testing.T) {
	foreign := v1.NodeCondition{Type: "example.com/KernelHealthy", Status: v1.ConditionTrue, Reason: "Fine"}
	existing := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "old", Labels: map[string]string{"keep": "me", v1.LabelHostname: "wrong"}},
		Spec:       v1.NodeSpec{Taints: []v1.Taint{{Key: "keep", Effect: v1.TaintEffectNoExecute}}, Unschedulable: true},
		Status: v1.NodeStatus{
			Capacity:   v1.ResourceList{"example.com/gpu": healthyQuantity(3)},
			Addresses:  []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "198.51.100.9"}},
			Conditions: []v1.NodeCondition{foreign, {Type: v1.NodeMemoryPressure, Status: v1.ConditionTrue}},
		},
	}
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil, existing)
		defer s.run()()
		s.expect("at start", "patch nodes; patch nodes/status")
		node := s.get()
		if node.Labels["keep"] != "me" || node.Labels[v1.LabelHostname] != "n" || !node.Spec.Unschedulable || len(node.Spec.Taints) != 1 {
			t.Errorf("labels %v, spec %+v: want ours mended and the rest kept", node.Labels, node.Spec)
		}
		if q := node.Status.Capacity["example.com/gpu"]; q.Value() != 3 {
			t.Errorf("capacity %v: a resource of others is gone", node.Status.Capacity)
		}
		if c := find(node.Status.Conditions, foreign.Type); c == nil || *c != foreign {
			t.Errorf("foreign condition: got %v, want %v", c, foreign)
		}
		if got := fmt.Sprint(node.Status.Addresses); got != "[{InternalIP 192.0.2.1} {InternalIP 2001:db8::1} {Hostname n}]" {
			t.Errorf("got addresses %s, want the old ones replaced", got)
		}
		if c := s.condition(v1.NodeMemoryPressure); c.Status != v1.ConditionTrue {
			t.Errorf("memory pressure ended with the restart, without the wait that it needs")
		}
		time.Sleep(5*time.Minute + 10*time.Second)
		if c := s.condition(v1.NodeMemoryPressure); c.Status != v1.ConditionFalse {
			t.Errorf("memory pressure is still %s five minutes later", c.Status)
		}
	})
}

func TestWhatOthersChangeOfOursIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil)
		defer s.run()()
		s.take()
		node := s.get().DeepCopy()
		find(node.Status.Conditions, v1.NodeReady).Status = v1.ConditionUnknown // as the control plane does for a lost node
		delete(node.Labels, v1.LabelHostname)
		if err := s.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		s.expect("ten seconds later", "patch nodes; patch nodes/status")
		if c := s.condition(v1.NodeReady); c.Status != v1.ConditionTrue {
			t.Errorf("Ready is %s, want True again", c.Status)
		}
	})
}

// A kubelet registers once: kubectl drain and kubectl delete node last until its next start.
func TestDeletedNode_StaysDeletedUntilTheNextStart(t *testing.T) {
	memory := &Memory{CordonFile: filepath.Join(t.TempDir(), "cordoned")}
	synctest.Test(t, func(t *testing.T) {
		remember := func(o *Options) { o.Memory = memory }
		s := newNodeStory(t, remember)
		stop := s.run()
		s.take()
		node := s.get()
		node.Spec.Unschedulable = true
		if err := s.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the watch delivers the cordon before the Node is looked at again
		for _, resource := range []string{"nodes", "leases"} {
			group, namespace := v1.SchemeGroupVersion, ""
			if resource == "leases" {
				group, namespace = coordination.SchemeGroupVersion, "kube-node-lease"
			}
			if err := s.client.Tracker().Delete(group.WithResource(resource), namespace, "n"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		s.take()
		s.takeLeases()
		time.Sleep(time.Hour)
		s.expect("an hour later", "")
		if got := s.takeLeases(); len(got) > 0 {
			t.Errorf("the node was deleted, and yet the API was asked to %q its lease", got)
		}
		if err := s.node.Err(); !errors.Is(err, ErrDeleted) {
			t.Errorf("got %v, want ErrDeleted", err)
		}
		if err := s.node.Announce(t.Context()); !errors.Is(err, ErrDeleted) {
			t.Errorf("announce: got %v, want ErrDeleted and no wait", err)
		}
		stop()
		for _, c := range []struct {
			story   string
			memory  *Memory
			created string
		}{
			{"a reload in the same process", memory, ""},
			{"a start", &Memory{CordonFile: memory.CordonFile}, "create nodes"},
		} {
			again := newNodeStory(t, func(o *Options) { o.Memory = c.memory })
			stop := again.run()
			again.expect(c.story, c.created)
			if c.created != "" {
				if node := again.get(); !node.Spec.Unschedulable {
					t.Errorf("%s: the node came back schedulable, want it cordoned as it was", c.story)
				}
				node := again.get()
				node.Spec.Unschedulable = false
				if err := again.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
					t.Fatal(err)
				}
				time.Sleep(11 * time.Second)
				if c.memory.wasCordoned() {
					t.Error("the cordon of a node that was opened again is still remembered")
				}
			}
			stop()
		}
	})
}

// An administrator may put a deleted Node back.
func TestDeletedNode_IsAdoptedWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil)
		defer s.run()()
		s.take()
		node := s.get()
		if err := s.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("nodes"), "", "n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		node.UID, node.ResourceVersion = "another", ""
		if err := s.client.Tracker().Add(node); err != nil {
			t.Fatal(err)
		}
		time.Sleep(22 * time.Second)
		if err := s.node.Err(); err != nil || s.node.UID() != "another" {
			t.Errorf("got %v and UID %s, want the node that is back", err, s.node.UID())
		}
		lease, err := s.client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil || lease.OwnerReferences[0].UID != "another" {
			t.Errorf("lease %+v, %v: want it owned by the new node", lease, err)
		}
	})
}

// Pods that select the node by a label may be scheduled as soon as it is there.
func TestMendedLabels_AreCurrentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "before"}})
		defer s.run()()
		s.take()
		if got := s.node.Current().Labels[v1.LabelHostname]; got != "n" {
			t.Errorf("got labels %v, want those that were put on the node", s.node.Current().Labels)
		}
	})
}

func TestNodeConvergesAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil)
		s.down = errors.New("connection refused")
		defer s.run()()
		time.Sleep(10 * time.Minute)
		s.expect("nothing can be looked at", "")
		if err := s.node.Err(); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v, want why", err)
		}
		s.change(func() { s.down = nil })
		time.Sleep(15 * time.Second)
		s.expect("the API is back", "create nodes")
		if err := s.node.Err(); err != nil {
			t.Errorf("still %v", err)
		}
		s.change(func() { s.down = apierrors.NewInternalError(errors.New("etcd is away")) })
		time.Sleep(10 * time.Minute)
		s.take()
		s.change(func() { s.down = nil })
		time.Sleep(15 * time.Second)
		s.expect("back again, and the status is old", "patch nodes/status")
		if age := time.Since(s.node.LeaseRenewed()); age > 15*time.Second {
			t.Errorf("lease is %v old", age)
		}
	})
}

func TestStaleCacheOfTheServerMakesNoSecondNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "old"}})
		behind := true
		s.client.PrependReactor("get", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
			if behind {
				behind = false
				return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n")
			}
			return false, nil, nil
		})
		defer s.run()()
		s.expect("the cache was behind", "create nodes; patch nodes; patch nodes/status")
		if s.node.UID() != "old" {
			t.Errorf("got UID %s, want that of the node that was there", s.node.UID())
		}
	})
}

func TestUnreadableMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil)
		s.unread = errors.New("too many open files")
		defer s.run()()
		time.Sleep(time.Minute)
		s.expect("never read: nothing true could be said", "")
		s.change(func() { s.unread = nil })
		time.Sleep(15 * time.Second)
		s.expect("readable", "create nodes")
		s.change(func() { s.unread = errors.New("too many open files") })
		time.Sleep(10 * time.Second)
		s.expect("not readable any more", "patch nodes/status")
		if c := s.condition(v1.NodeDiskPressure); c.Status != v1.ConditionUnknown {
			t.Errorf("got %+v, want Unknown", c)
		}
		if q := s.get().Status.Capacity[v1.ResourceCPU]; q.Value() != 2 {
			t.Errorf("capacity of %s CPUs, want the 2 of the last good reading", q.String())
		}
	})
}

func TestAnnounceRetriesUntilTheServerHasTakenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil)
		stop := s.run()
		s.take()
		stop()
		s.change(func() { s.down, s.notReady = errors.New("connection refused"), errors.New("node is shutting down") })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.node.Announce(ctx); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v, want that the status was not accepted", err)
		}
		time.AfterFunc(time.Minute, func() { s.change(func() { s.down = nil }) })
		if err := s.node.Announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := s.condition(v1.NodeReady); c.Status != v1.ConditionFalse || c.Reason != "KubeletNotReady" || c.Message != "node is shutting down" {
			t.Errorf("got %+v, want False because the node is shutting down", c)
		}
	})
}

func TestRunOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNodeStory(t, nil)
		s.run()()
		if err := s.node.Run(t.Context()); !errors.Is(err, errRunTwice) {
			t.Errorf("got %v, want that Run may be called only once", err)
		}
	})
}

// A cordon is an event at once, and so is the end of a Node, also with an interval that is long.
func TestNode_WatchIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reasons []string
		var s *nodeStory
		s = newNodeStory(t, func(o *Options) {
			o.Memory, o.Interval = &Memory{CordonFile: filepath.Join(t.TempDir(), "cordoned")}, time.Hour
			o.Event = func(_, reason, _ string) { s.change(func() { reasons = append(reasons, reason) }) }
		})
		defer s.run()()
		s.take()
		node := s.get()
		node.Spec.Unschedulable = true
		nodes := v1.SchemeGroupVersion.WithResource("nodes")
		if err := s.client.Tracker().Update(nodes, node, ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.change(func() {
			if !slices.Contains(reasons, "NodeNotSchedulable") {
				t.Errorf("cordoned: got events %q, want NodeNotSchedulable", reasons)
			}
		})
		if err := s.client.Tracker().Delete(nodes, "", "n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.node.Err(); !errors.Is(err, ErrDeleted) {
			t.Errorf("deleted: got %v, want ErrDeleted", err)
		}
	})
}
