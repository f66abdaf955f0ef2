package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

// claimStory is a Node with a name that another program has, or had.
type claimStory struct {
	*nodeStory
	mu     sync.Mutex // guards events
	events []string
}

// rival is the Node of another program, and the lease that it renews.
type rival struct {
	info     v1.NodeSystemInfo
	instance string
	renewed  time.Time
}

func (r rival) lease() *coordination.Lease {
	holder, seconds, renewed := "n", int32(40), metav1.NewMicroTime(r.renewed)
	lease := &coordination.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: v1.NamespaceNodeLease},
		Spec:       coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	if r.instance != "" {
		lease.Annotations = map[string]string{"statusd/instance": r.instance}
	}
	return lease
}

func newClaimStory(t *testing.T, r rival) *claimStory {
	s := &claimStory{}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "before"}, Status: v1.NodeStatus{NodeInfo: r.info}}
	s.nodeStory = newNodeStory(t, func(o *Options) {
		o.Instance, o.InstanceEnded = "here", func(instance string) bool { return instance == "ended" }
		o.Event = func(_, reason, _ string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, reason)
		}
	}, node, r.lease())
	s.reading.MachineID, s.reading.SystemUUID, s.reading.BootID = "machine", "system", "boot"
	return s
}

// renew is what the other program does.
func (s *claimStory) renew(r rival) {
	s.t.Helper()
	r.renewed = time.Now()
	if err := s.client.Tracker().Update(coordination.SchemeGroupVersion.WithResource("leases"), r.lease(), v1.NamespaceNodeLease); err != nil {
		s.t.Fatal(err)
	}
}

func (s *claimStory) isClaimed() bool {
	synctest.Wait()
	return s.node.isClaimed()
}

// told is how often an event has said that the name is in use.
func (s *claimStory) told() (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, reason := range s.events {
		if reason == eventNameInUse {
			count++
		}
	}
	return count
}

func infoOf(version, machine, boot string) v1.NodeSystemInfo {
	return v1.NodeSystemInfo{KubeletVersion: version, MachineID: machine, SystemUUID: machine, BootID: boot}
}

// A machine that is given the name of a live node by mistake, as by a copied config or a host name that two machines have, reports nothing
// of the pods of that node and changes nothing of it.
func TestNameInUse_NodeIsLeftAlone(t *testing.T) {
	const statusd = "v1.36.3-statusd.0.1.0"
	for name, r := range map[string]rival{
		"kubelet of another machine":                                   {info: infoOf("v1.36.3", "other", "other")},
		"kubelet of this machine":                                      {info: v1.NodeSystemInfo{KubeletVersion: "v1.36.3", MachineID: "machine", SystemUUID: "system", BootID: "boot"}},
		"kubelet that took the place of this statusd":                  {info: v1.NodeSystemInfo{KubeletVersion: "v1.36.3", MachineID: "machine", SystemUUID: "system", BootID: "boot"}, instance: "here"},
		"statusd of another machine":                                   {info: infoOf(statusd, "other", "other"), instance: "there"},
		"earlier version of statusd on another machine":                {info: infoOf(statusd, "other", "other")},
		"statusd with another state directory, same boot":              {info: v1.NodeSystemInfo{KubeletVersion: statusd, MachineID: "machine", SystemUUID: "system", BootID: "boot"}, instance: "there"},
		"statusd with the state directory of an ended one, other boot": {info: v1.NodeSystemInfo{KubeletVersion: statusd, MachineID: "machine", SystemUUID: "system", BootID: "clone"}, instance: "ended"},
		"statusd on a clone of this machine":                           {info: v1.NodeSystemInfo{KubeletVersion: statusd, MachineID: "machine", SystemUUID: "system", BootID: "clone"}, instance: "here"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r.renewed = time.Now()
				s := newClaimStory(t, r)
				defer s.run()()
				for range 60 {
					s.renew(r)
					time.Sleep(10 * time.Second)
				}
				for name, report := range map[string]func(context.Context) error{"report": s.node.Report, "announce": s.node.Announce} {
					if err := report(t.Context()); !errors.Is(err, errNameInUse) {
						t.Errorf("%s: got %v, want that the name is in use", name, err)
					}
				}
				s.expect("while the other one renews its lease", "")
				if got := s.takeLeases(); len(got) > 0 {
					t.Errorf("the lease of the other one was written: %q", got)
				}
				if err := s.node.Err(); s.isClaimed() || !errors.Is(err, errNameInUse) {
					t.Errorf("claimed %v, error %v: want that the name is in use", s.node.isClaimed(), err)
				}
				if got := s.told(); got != 1 {
					t.Errorf("%d events about the name, want 1", got)
				}
				s.renew(r)
				time.Sleep(19 * time.Second)
				if s.isClaimed() {
					t.Error("the Node was taken over 19 s after the last renewal, which a kubelet may repeat within 20 s")
				}
				time.Sleep(4 * time.Second)
				if !s.isClaimed() {
					t.Error("the Node was not taken over 23 s after the last renewal")
				}
				s.expect("taken over", "patch nodes; patch nodes/status")
				lease, err := s.client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(t.Context(), "n", metav1.GetOptions{})
				if err != nil || lease.Annotations["statusd/instance"] != "here" {
					t.Errorf("got lease %+v, %v, want this instance in it", lease, err)
				}
			})
		})
	}
}

// A restart, an upgrade and a reboot cost no time.
func TestNameInUse_OwnNodeIsTakenOverAtOnce(t *testing.T) {
	own := v1.NodeSystemInfo{KubeletVersion: "v1.36.3-statusd.0.1.0", MachineID: "machine", SystemUUID: "system", BootID: "boot"}
	rebooted := own
	rebooted.BootID = "earlier"
	for name, r := range map[string]rival{
		"a restart":                            {info: own, instance: "here"},
		"a start with another state directory": {info: own, instance: "ended"},
		"an upgrade":                           {info: own},
		"a reboot":                             {info: rebooted, instance: "here"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r.renewed = time.Now()
				if name == "a reboot" {
					r.renewed = booted(time.Now()).Add(-time.Second)
				}
				s := newClaimStory(t, r)
				defer s.run()()
				if !s.isClaimed() || s.told() > 0 {
					t.Errorf("claimed %v with %d events, want the Node at once", s.node.isClaimed(), s.told())
				}
			})
		})
	}
}

// Two agents that were started while the API server was away may both have the name.
func TestNameInUse_BesideThisOne_IsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rival{info: v1.NodeSystemInfo{KubeletVersion: "v1.36.3-statusd.0.1.0", MachineID: "machine", SystemUUID: "system", BootID: "boot"}, instance: "here", renewed: time.Now()}
		s := newClaimStory(t, r)
		defer s.run()()
		time.Sleep(time.Minute)
		r.instance = "there"
		s.renew(r)
		s.change(func() {
			s.down = apierrors.NewConflict(coordination.Resource("leases"), "n", errors.New("it has changed"))
		})
		time.Sleep(11 * time.Second)
		s.change(func() { s.down = nil })
		time.Sleep(time.Minute)
		if got := s.told(); got != 1 {
			t.Errorf("%d events about the name, want 1", got)
		}
	})
}

// A server that was just started refuses everything for a moment; a program that may not read leases has to work without them.
func TestNameInUse_LeaseThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newClaimStory(t, rival{info: infoOf("v1.36.3", "other", "other"), renewed: time.Now()})
		s.client.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(coordination.Resource("leases"), "n", errors.New("no role"))
		})
		defer s.run()()
		if s.isClaimed() {
			t.Error("the Node was taken over after the first refusal")
		}
		time.Sleep(time.Minute)
		if !s.isClaimed() {
			t.Errorf("the Node was not taken over although its lease cannot be read: %v", s.node.Err())
		}
	})
}
