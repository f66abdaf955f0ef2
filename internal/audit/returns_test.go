package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/audit"
)

// wrongFor reports whether the API is wrong at a time: for eight of each ten seconds, from the first minute on until the fourth.
func wrongFor(now time.Duration) bool {
	return now > time.Minute && now < 4*time.Minute && now%(10*time.Second) < 8*time.Second
}

// opened runs an auditor and counts how often drift of a kind began, with its last form.
func opened(n *simNode, to time.Duration) (begins map[audit.Kind]int, last map[audit.Kind]audit.Difference, first map[audit.Kind]time.Duration) {
	begins, last, first = map[audit.Kind]int{}, map[audit.Kind]audit.Difference{}, map[audit.Kind]time.Duration{}
	a := audit.NewAuditor(audit.AuditorOptions{})
	open := map[string]bool{}
	for now := time.Duration(0); now <= to; now += time.Second / 2 {
		seen := map[string]bool{}
		for _, d := range a.Audit(n.facts(now)).Differences {
			key := fmt.Sprint(d.Kind, d.Pod.UID, d.Writer)
			if !d.Drift {
				continue
			}
			if seen[key] = true; !open[key] {
				begins[d.Kind]++
				if _, known := first[d.Kind]; !known {
					first[d.Kind] = now
				}
			}
			last[d.Kind] = d
		}
		open = seen
	}
	return begins, last, first
}

// A second kubelet with the name of the node writes its own containers, which this runtime never had. Each kubelet corrects the other every
// few seconds, so that no difference lasts: what comes back is drift, and it is one for the node.
func TestReturns_TwoKubeletsOfOneName(t *testing.T) {
	n := steady(8)
	for _, s := range n.pods {
		s.lieAPI = func(now time.Duration, pod *v1.Pod) {
			if wrongFor(now) {
				pod.Status = *pod.Status.DeepCopy() // the truth is shared
				for i := range pod.Status.ContainerStatuses {
					pod.Status.ContainerStatuses[i].ContainerID = fmt.Sprintf("containerd://other-%d", i)
				}
			}
		}
	}
	begins, last, first := opened(n.finish(), 6*time.Minute)
	d := last[audit.TwoKubelets]
	if begins[audit.TwoKubelets] != 1 || first[audit.TwoKubelets] > 2*time.Minute || !strings.Contains(d.Message, "8 pods") || d.Certainty != audit.Certain || len(d.Evidence) == 0 {
		t.Errorf("began %v at %v: %+v", begins, first, d)
	}
	if len(begins) != 1 {
		t.Errorf("one cause gives %v", begins)
	}
}

// What a status says late, again and again, is not what comes back: the runtime has changed in between.
func TestReturns_CrashLoopIsNoFight(t *testing.T) {
	n := steady(1)
	s := n.pods[0]
	for range 30 {
		s.exits(5*time.Second, "app", 1)
		s.starts(5*time.Second, "app")
	}
	if begins, _, _ := opened(n.finish(), 5*time.Minute); len(begins) != 0 {
		t.Errorf("got %v", begins)
	}
}

// The API may know more than the last answer of a kubelet that is polled: what it has of a pod that crashes differs from that answer, agrees and differs again.
func TestReturns_APIAheadOfTheKubeletIsNoFight(t *testing.T) {
	n := steady(1)
	n.own, n.poll = true, 10*time.Second
	s := n.pods[0]
	for range 40 {
		s.exits(1500*time.Millisecond, "app", 1)
		s.starts(1500*time.Millisecond, "app")
	}
	if begins, last, first := opened(n.finish(), 3*time.Minute); len(begins) != 0 {
		t.Errorf("began %v at %v: %+v", begins, first, last)
	}
}

// liar is a writer that changes a status every second, and a kubelet that corrects it every ten.
func liar(pod *v1.Pod, now time.Duration, field string, change func(*v1.PodStatus)) {
	if !wrongFor(now) {
		return
	}
	pod.Status = *pod.Status.DeepCopy() // the truth is shared
	change(&pod.Status)
	written := metav1.NewTime(at(now.Truncate(time.Second)))
	pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: "liar", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: &written,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(field)})
}

// Each field that traffic and operators go by, patched every second against a kubelet that corrects it: one drift, which names the writer. What
// another side contradicts is certain; the rest is possible, with the reason.
func TestReturns_FightAboutAFieldIsOneDrift(t *testing.T) {
	container := `{"f:status":{"f:containerStatuses":{}}}`
	for _, c := range []struct {
		name, field string
		change      func(*v1.PodStatus)
		certainty   audit.Certainty
		message     string
	}{
		{"podIP", `{"f:status":{"f:podIP":{},"f:podIPs":{}}}`, func(s *v1.PodStatus) { s.PodIP = "10.9.9.9" }, audit.Certain, "podIP 10.9.9.9"},
		{"podIP of the host", `{"f:status":{"f:podIP":{}}}`, func(s *v1.PodStatus) { s.PodIP = "203.0.113.9" }, audit.Certain, "podIP 203.0.113.9 to the status of default/web-0, which belongs to the kubelet; by the rest of the status it is 192.0.2.1 by the Node"},
		{"hostIP", `{"f:status":{"f:hostIP":{}}}`, func(s *v1.PodStatus) { s.HostIP = "203.0.113.9" }, audit.Certain, "hostIP 203.0.113.9"},
		{"restart count", container, func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount = 99 }, audit.Certain, "restarted 99 times"},
		{"container ID", container, func(s *v1.PodStatus) { s.ContainerStatuses[0].ContainerID = "containerd://other" }, audit.Certain, `container "app"`},
		{"image", container, func(s *v1.PodStatus) { s.ContainerStatuses[0].ImageID = "sha256:other" }, audit.Possible, "not known without its Pods API"},
		{"readiness, consistently", `{"f:status":{"f:containerStatuses":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}},"k:{\"type\":\"ContainersReady\"}":{"f:status":{}}}}}`,
			func(s *v1.PodStatus) {
				s.ContainerStatuses[0].Ready = false
				for i := range s.Conditions {
					if t := s.Conditions[i].Type; t == v1.PodReady || t == v1.ContainersReady {
						s.Conditions[i].Status = v1.ConditionFalse
					}
				}
			}, audit.Possible, "containerStatuses, Ready, ContainersReady"},
		{"start before the pod was created", `{"f:status":{"f:startTime":{}}}`, func(s *v1.PodStatus) { s.StartTime = &metav1.Time{Time: at(-24 * time.Hour)} }, audit.Certain, "when the pod was created"},
		{"start after the sandbox", `{"f:status":{"f:startTime":{}}}`, func(s *v1.PodStatus) { s.StartTime = &metav1.Time{Time: at(24 * time.Hour)} }, audit.Certain, "the sandbox of the pod was made at"},
		{"start that may be", `{"f:status":{"f:startTime":{}}}`, func(s *v1.PodStatus) { s.StartTime = &metav1.Time{Time: at(0)} }, audit.Possible, "writes startTime"},
		{"reason", `{"f:status":{"f:reason":{}}}`, func(s *v1.PodStatus) { s.Reason = "Evicted" }, audit.Certain, "reason Evicted"},
		{"message", `{"f:status":{"f:message":{}}}`, func(s *v1.PodStatus) { s.Message = "gone" }, audit.Certain, `reason "gone"`},
		{"quality of service", `{"f:status":{"f:qosClass":{}}}`, func(s *v1.PodStatus) { s.QOSClass = v1.PodQOSGuaranteed }, audit.Possible, "writes qosClass"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := steady(1)
			n.pods[0].lieAPI = func(now time.Duration, pod *v1.Pod) { liar(pod, now, c.field, c.change) }
			n.pods[0].pod.Spec.HostNetwork = strings.HasSuffix(c.name, "of the host")
			before := n.change
			n.change = func(now time.Duration, f *audit.Facts) {
				if before != nil {
					before(now, f)
				}
				for id, s := range f.Sandboxes {
					s.IPs, s.Ready = []string{"10.0.0.7"}, true
					f.Sandboxes[id] = s
				}
				if f.NodeObject != nil {
					f.NodeObject.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}}
				}
			}
			begins, last, first := opened(n.finish(), 6*time.Minute)
			d := last[audit.ForeignWriter]
			if begins[audit.ForeignWriter] != 1 || len(begins) != 1 || d.Writer != "liar" || d.Certainty != c.certainty || !strings.Contains(d.Message, c.message) {
				t.Errorf("began %v at %v: %+v", begins, first, d)
			}
			if took := first[audit.ForeignWriter] - time.Minute; took > time.Minute {
				t.Errorf("seen after %v", took)
			}
		})
	}
}

// nodeConditions are the conditions of a ready Node with one change.
func nodeConditions(changed v1.NodeConditionType, to v1.ConditionStatus) []v1.NodeCondition {
	list := []v1.NodeCondition{{Type: changed, Status: to}}
	if changed != v1.NodeReady {
		list = append(list, v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue})
	}
	return list
}

// A writer of the Node's conditions against a kubelet that corrects them every ten seconds: one drift. What nothing contradicts is possible.
func TestReturns_FightAboutTheNodeIsOneDrift(t *testing.T) {
	for _, c := range []struct {
		condition v1.NodeConditionType
		status    v1.ConditionStatus
		certainty audit.Certainty
	}{{v1.NodeReady, v1.ConditionFalse, audit.Certain}, {v1.NodeDiskPressure, v1.ConditionTrue, audit.Possible}} {
		t.Run(string(c.condition), func(t *testing.T) {
			n := steady(1)
			n.change = func(now time.Duration, f *audit.Facts) {
				if !wrongFor(now) {
					return
				}
				written := metav1.NewTime(at(now.Truncate(time.Second)))
				f.NodeObject.Status.Conditions = nodeConditions(c.condition, c.status)
				f.NodeObject.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "liar", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: &written,
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:status":{"f:conditions":{"k:{\"type\":\"%s\"}":{"f:status":{}}}}}`, c.condition))}}
			}
			begins, last, first := opened(n.finish(), 6*time.Minute)
			d := last[audit.ForeignWriter]
			if begins[audit.ForeignWriter] != 1 || len(begins) != 1 || d.Writer != "liar" || d.Certainty != c.certainty || d.Pod != (audit.Ref{}) {
				t.Errorf("began %v at %v: %+v", begins, first, d)
			}
		})
	}
}

// A writer of what says where a node is reached: what this machine or the kubelet contradicts is certain. A program of a cloud, which writes the addresses by
// right, and a writer that comes once are not reported.
func TestReturns_FightAboutThePlaceOfTheNode(t *testing.T) {
	addresses := `{"f:status":{"f:addresses":{"k:{\"type\":\"InternalIP\"}":{"f:address":{}}}}}`
	address := func(ip string) func(*v1.NodeStatus) {
		return func(s *v1.NodeStatus) { s.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}} }
	}
	for _, c := range []struct {
		name, manager, field string
		change               func(*v1.NodeStatus)
		certainty            audit.Certainty
		message              string
	}{
		{"address of another machine", "liar", addresses, address("203.0.113.9"), audit.Certain, "InternalIP 203.0.113.9 to the status of node n1 again and again, which belongs to the kubelet; this machine has the addresses 192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4 and 1 more."},
		{"address of this machine", "liar", addresses, address("192.0.2.1"), audit.Possible, "InternalIP 192.0.2.1"},
		{"address by a cloud", "acme-cloud-controller-manager", addresses, address("203.0.113.9"), "", ""},
		{"port", "liar", `{"f:status":{"f:daemonEndpoints":{"f:kubeletEndpoint":{"f:Port":{}}}}}`, func(s *v1.NodeStatus) { s.DaemonEndpoints.KubeletEndpoint.Port = 9 }, audit.Certain, "the kubelet answers on port 10250"},
		{"version", "liar", `{"f:status":{"f:nodeInfo":{"f:kubeletVersion":{}}}}`, func(s *v1.NodeStatus) { s.NodeInfo.KubeletVersion = "v9" }, audit.Possible, "writes kubeletVersion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := steady(1)
			n.change = func(now time.Duration, f *audit.Facts) {
				f.KubeletAnswer.From = "https://n1:10250/pods"
				f.Addresses = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"}
				if !wrongFor(now) {
					return
				}
				written := metav1.NewTime(at(now.Truncate(time.Second)))
				c.change(&f.NodeObject.Status)
				f.NodeObject.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: c.manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: &written,
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(c.field)}}
			}
			begins, last, first := opened(n.finish(), 6*time.Minute)
			d := last[audit.ForeignWriter]
			if c.certainty == "" {
				if len(begins) != 0 {
					t.Errorf("began %v at %v: %+v", begins, first, d)
				}
				return
			}
			if begins[audit.ForeignWriter] != 1 || len(begins) != 1 || d.Writer != "liar" || d.Certainty != c.certainty || !strings.Contains(d.Message, c.message) {
				t.Errorf("began %v at %v: %+v", begins, first, d)
			}
		})
	}
}

// An address that is not that of the sandbox is not true whoever wrote it: an admission policy changes what the kubelet writes under the kubelet's name.
func TestAddressOfAnotherSandbox(t *testing.T) {
	for _, c := range []struct {
		ip, second string
		want       int
	}{{"10.0.0.7", "fd00::7", 0}, {"fd00::7", "", 0}, {"10.9.9.9", "", 1}, {"10.0.0.7", "10.9.9.9", 1}, {"", "", 0}} {
		n := steady(1)
		n.pods[0].lieAPI = func(now time.Duration, pod *v1.Pod) {
			if now > time.Minute {
				pod.Status = *pod.Status.DeepCopy() // the truth is shared
				pod.Status.PodIP, pod.Status.PodIPs = c.ip, []v1.PodIP{{IP: c.ip}, {IP: c.second}}
			}
		}
		n.change = func(_ time.Duration, f *audit.Facts) {
			for id, s := range f.Sandboxes {
				s.IPs, s.Ready = []string{"10.0.0.7", "fd00::7"}, true
				f.Sandboxes[id] = s
			}
		}
		begins, last, _ := opened(n.finish(), 3*time.Minute)
		if d := last[audit.KubeletBehindRuntime]; begins[audit.KubeletBehindRuntime] != c.want || len(begins) != c.want || c.want == 1 && !strings.Contains(d.Message, "has the address 10.9.9.9") {
			t.Errorf("%s, %s: %v, %+v", c.ip, c.second, begins, d)
		}
	}
}

// A container that the spec of its pod does not have was started by another client of the runtime. An ephemeral container is of the spec.
func TestContainerThatTheSpecDoesNotHave(t *testing.T) {
	for name, want := range map[string]int{"intruder": 1, "debugger": 0, "app": 0} {
		n := steady(1)
		n.pods[0].pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debugger"}}}
		n.change = func(now time.Duration, f *audit.Facts) {
			if pod := n.pods[0].pod; name != "app" && now > time.Minute {
				f.Containers["another"] = audit.Container{ID: "another", UID: pod.UID, Namespace: pod.Namespace, PodName: pod.Name, Name: name, State: audit.ContainerRunning, Started: at(time.Minute), At: at(time.Minute)}
			}
		}
		begins, last, _ := opened(n.finish(), 3*time.Minute)
		if d := last[audit.ContainerWithoutPod]; begins[audit.ContainerWithoutPod] != want || len(begins) != want || want == 1 && (d.Container != name || d.Repair) {
			t.Errorf("%s: %v, %+v", name, begins, d)
		}
	}
}

// A Node that names another machine is the proof of a second kubelet. After a restart of the machine the boot ID is old until the kubelet has
// written, which proves nothing.
func TestOtherMachine(t *testing.T) {
	for _, c := range []struct {
		name string
		info v1.NodeSystemInfo
		boot time.Duration // how long ago the machine was started
		want bool
	}{
		{"this machine", v1.NodeSystemInfo{MachineID: "m", SystemUUID: "U", BootID: "b"}, time.Hour, false},
		{"not known", v1.NodeSystemInfo{}, time.Hour, false},
		{"a clone", v1.NodeSystemInfo{MachineID: "m", SystemUUID: "other", BootID: "c"}, time.Hour, true},
		{"another installation", v1.NodeSystemInfo{MachineID: "n", SystemUUID: "u"}, time.Hour, true},
		{"another boot, and the kubelet has written since", v1.NodeSystemInfo{MachineID: "m", SystemUUID: "u", BootID: "c"}, time.Hour, true},
		{"the boot before, and the kubelet has not written since", v1.NodeSystemInfo{MachineID: "m", SystemUUID: "u", BootID: "c"}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := steady(1)
			n.change = func(now time.Duration, f *audit.Facts) {
				f.Identity = audit.Identity{MachineID: "m", SystemUUID: "u", BootID: "b"}
				f.Boot = at(now - c.boot)
				f.NodeObject = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.Node}, Status: v1.NodeStatus{NodeInfo: c.info,
					Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(at(now))}}}}
			}
			begins, last, _ := opened(n.finish(), 2*time.Minute)
			if (begins[audit.TwoKubelets] == 1) != c.want || c.want && !strings.Contains(last[audit.TwoKubelets].Message, "this machine has the") {
				t.Errorf("got %v: %s", begins, last[audit.TwoKubelets].Message)
			}
		})
	}
}

// A pod whose control group is frozen for longer than a checkpoint takes does not run, whatever its status says.
func TestFrozenContainer(t *testing.T) {
	for _, c := range []struct {
		long time.Duration
		want int
	}{{10 * time.Second, 0}, {time.Minute, 1}} {
		n := steady(1)
		n.change = func(now time.Duration, f *audit.Facts) {
			uid := n.pods[0].pod.UID
			f.Cgroups[uid] = audit.Cgroup{Path: "/kubepods/pod" + string(uid), Processes: 2, Frozen: now > time.Minute && now < time.Minute+c.long, At: at(0)}
		}
		if begins, _, _ := opened(n.finish(), 4*time.Minute); begins[audit.FrozenContainer] != c.want || len(begins) != c.want {
			t.Errorf("frozen for %v: %v", c.long, begins)
		}
	}
}

// A container whose processes are all stopped by a signal does not run either. The process of a sandbox has nothing to do.
func TestFrozenContainer_StoppedBySignal(t *testing.T) {
	for _, c := range []struct {
		group string
		want  int
	}{{"cri-containerd-%s-app-0.scope", 1}, {"%s-app-0", 1}, {"%s-sandbox", 0}} {
		n := steady(1)
		n.change = func(now time.Duration, f *audit.Facts) {
			uid := n.pods[0].pod.UID
			f.Cgroups[uid] = audit.Cgroup{Path: "/kubepods/pod" + string(uid), Processes: 2, At: at(0)}
			if now > time.Minute && now < 2*time.Minute {
				f.Cgroups[uid] = audit.Cgroup{Path: "/kubepods/pod" + string(uid), Processes: 2, Stopped: []string{fmt.Sprintf(c.group, uid)}, At: at(0)}
			}
		}
		begins, last, _ := opened(n.finish(), 4*time.Minute)
		if d := last[audit.FrozenContainer]; begins[audit.FrozenContainer] != c.want || len(begins) != c.want || c.want == 1 && d.Container != "app" {
			t.Errorf("%s: %v, %+v", c.group, begins, d)
		}
	}
}
