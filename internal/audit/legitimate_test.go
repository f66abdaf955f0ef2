package audit_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/podstatus"
)

// calm is a node with one pod of two containers that all sides agree on; the kubelet shows its own statuses.
func calm(lines ...string) *story {
	s := newStory()
	if len(lines) == 0 {
		lines = []string{"pod web app,log", "api web Running ready app=running:c1 log=running:c2", "kubelet web Running ready app=running:c1 log=running:c2", "runtime web app=running:c1 log=running:c2"}
	}
	s.tell("node own")
	for _, l := range lines {
		s.tell(l)
	}
	return s
}

func (s *story) tell(line string) {
	if err := s.line(words(line)); err != nil {
		panic(err)
	}
}

// onAPI and onKubelet change one copy of the pod.
func onAPI(change func(*v1.Pod)) func(*story) {
	return func(s *story) { change(s.facts.APIPods["uid-web"].Pod) }
}

func onKubelet(change func(*v1.Pod)) func(*story) {
	return func(s *story) { change(s.facts.KubeletPods["uid-web"].Pod) }
}

func written(manager, raw string, change func(*v1.Pod)) func(*story) {
	return onAPI(func(p *v1.Pod) {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
			Time: &metav1.Time{Time: ago("1m")}, FieldsV1: metav1.NewFieldsV1(raw)})
		change(p)
	})
}

func all(changes ...func(*story)) func(*story) {
	return func(s *story) {
		for _, c := range changes {
			c(s)
		}
	}
}

func says(lines ...string) func(*story) {
	return func(s *story) {
		for _, l := range lines {
			s.tell(l)
		}
	}
}

// TestLegitimateDifferences: what the sides may say differently for as long as they like.
func TestLegitimateDifferences(t *testing.T) {
	conditionRaw := func(t string) string {
		return `{"f:status":{"f:conditions":{"k:{\"type\":\"` + t + `\"}":{"f:status":{}}}}}`
	}
	for _, c := range []struct {
		name   string
		lines  []string
		change func(*story)
	}{
		{"nothing differs", nil, nil},

		// Fields that another fills, or that are written in another form.
		{"fields that the API fills", nil, onAPI(func(p *v1.Pod) {
			p.Status.QOSClass, p.Status.NominatedNodeName, p.Status.Resize = v1.PodQOSBurstable, "n2", v1.PodResizeStatusDeferred
			p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu"}}
		})},
		{"addresses", nil, onKubelet(func(p *v1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "10.0.0.1", []v1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}
			p.Status.HostIP = "192.0.2.1"
		})},
		{"times in whole seconds", nil, onKubelet(func(p *v1.Pod) {
			p.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.Time{Time: ago("25m").Add(300 * time.Millisecond)}
		})},
		{"conditions of other owners", nil, all(
			onAPI(func(p *v1.Pod) {
				p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: "example.com/attached", Status: v1.ConditionTrue})
			}),
			written("lb-controller", conditionRaw("example.com/attached"), func(*v1.Pod) {}))},
		{"generations, reasons and messages", nil, onKubelet(func(p *v1.Pod) {
			p.Generation, p.Status.ObservedGeneration = 4, 4
			p.Status.Conditions[0].Message, p.Status.Conditions[0].ObservedGeneration = "words", 4
		})},
		{"resources of a resize", nil, onKubelet(func(p *v1.Pod) {
			p.Status.ContainerStatuses[0].AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue})
		})},
		{"a condition that only one has", nil, onAPI(func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue}, v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionTrue})
		})},

		// Writers that may write.
		{"the scheduler", nil, written("kube-scheduler", conditionRaw("PodScheduled"), func(*v1.Pod) {})},
		{"the eviction API", nil, written("kubectl", conditionRaw("DisruptionTarget"), func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue})
		})},
		{"node-lifecycle, while the kubelet is silent", nil, all(says("node silent=kubelet"), written("kube-controller-manager", conditionRaw("Ready"), func(p *v1.Pod) {
			p.Status.Conditions[0].Status = v1.ConditionFalse
		}))},
		{"the garbage collector of pods, while the kubelet stops the pod", nil, all(written("kube-controller-manager", `{"f:status":{"f:phase":{}}}`, func(p *v1.Pod) {
			p.Status.Phase = v1.PodFailed
			*p.Spec.TerminationGracePeriodSeconds = 300
		}))},
		{"another writer of what is true", nil, written("operator", `{"f:status":{"f:phase":{},"f:containerStatuses":{}}}`, func(*v1.Pod) {})},
		{"a repair", nil, all(says("node silent=kubelet"), written(audit.RepairManager, conditionRaw("Ready"), func(p *v1.Pod) {
			p.Status.Conditions[0].Status = v1.ConditionFalse
		}))},
		{"a kubelet of another name", nil, all(says("node silent=kubelet lease=0s"),
			func(s *story) {
				s.facts.Lease.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "k3s", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`)}}
			},
			written("k3s", `{"f:status":{"f:reason":{}}}`, func(p *v1.Pod) { p.Status.Reason = "Evicted" }),
			func(s *story) {
				s.change(func(now time.Time, f *audit.Facts) {
					f.Lease.Spec.RenewTime, f.LeaseAt = &metav1.MicroTime{Time: now}, now
				})
			})},
		{"a kubelet of another name, by what it writes of other pods", nil, all(says("node silent=kubelet", "pod db db", "api db Running ready db=running:c5", "runtime db db=running:c5"),
			func(s *story) {
				s.facts.APIPods["uid-db"].Pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelite", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
					FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:hostIP":{},"f:startTime":{}}}`)}}
			},
			written("kubelite", `{"f:status":{"f:reason":{}}}`, func(p *v1.Pod) { p.Status.Reason = "Evicted" }))},
		{"fields that cannot be read", nil, written("strange", `{"f:status":[]}`, func(*v1.Pod) {})},

		// What the runtime has forgotten, or has beside.
		{"an ephemeral container", nil, all(
			onAPI(func(p *v1.Pod) {
				p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
			}),
			says("runtime web app=running:c1 log=running:c2 debug=running:c3"))},
		{"a finished pod whose containers are collected", []string{"pod web app policy=Never", "api web Succeeded app=exited:c1", "kubelet web Succeeded app=exited:c1"}, nil},
		{"a container that was lost", []string{"pod web app policy=Never", "api web Failed app=exited:c1:0:137", "kubelet web Failed app=exited:c1:0:137"}, nil},
		{"an end that was not seen", []string{"pod web app,log", "api web Running app=exited:c1:0:137 log=running:c2", "kubelet web Running app=exited:c1:0:137 log=running:c2", "runtime web app=exited:c1:0:0 log=running:c2"}, nil},
		{"old attempts are collected", []string{"pod web app", "api web Running ready app=running:c9:9", "kubelet web Running ready app=running:c9:9", "runtime web app=running:c9:9"}, nil},
		{"all attempts are collected", []string{"pod web app", "api web Running app=CrashLoopBackOff:c9:9", "kubelet web Running app=CrashLoopBackOff:c9:9", "runtime web"}, nil},
		{"a count that is higher than the runtime's", []string{"pod web app", "api web Running ready app=running:c9:12", "kubelet web Running ready app=running:c9:12", "runtime web app=running:c9:3"}, nil},
		{"init containers are collected", []string{"pod web app init=setup", "api web Running ready setup=exited:i1 app=running:c1", "kubelet web Running ready setup=exited:i1 app=running:c1", "runtime web app=running:c1"}, nil},
		{"a new sandbox", []string{"pod web app", "api web Pending app=ContainerCreating", "kubelet web Pending app=ContainerCreating", "runtime web app=exited:c1"}, func(s *story) {
			s.facts.Sandboxes["s-web"] = audit.Sandbox{ID: "s-web", UID: "uid-web", Ready: false}
			s.facts.Sandboxes["s2"] = audit.Sandbox{ID: "s2", UID: "uid-web", Attempt: 1, Ready: true}
		}},
		{"a crash loop", []string{"pod web app", "api web Running app=CrashLoopBackOff:c4:4", "kubelet web Running app=CrashLoopBackOff:c4:4", "runtime web app=exited:c4:4:1 app=exited:c3:3:1"}, nil},
		{"an image that cannot be pulled", []string{"pod web app", "api web Pending app=ImagePullBackOff", "kubelet web Pending app=ImagePullBackOff", "runtime web"}, nil},
		{"a container that is created", []string{"pod web app", "api web Pending app=ContainerCreating", "kubelet web Pending app=ContainerCreating", "runtime web app=created:c1"}, nil},
		{"an unknown state", []string{"pod web app", "api web Running ready app=running:c1", "kubelet web Running ready app=running:c1", "runtime web app=unknown:c1"}, nil},
		{"a container of no pod of Kubernetes", nil, func(s *story) {
			s.facts.Containers["x"] = audit.Container{ID: "x", Name: "x", State: audit.ContainerRunning}
		}},
		{"a container that is not in the spec and has ended", nil, says("runtime web app=running:c1 log=running:c2 other=exited:c3")},
		{"an exited container of no pod", nil, says("runtime old app=exited:c9")},

		// The kubelet is busy with the pod.
		{"the other image is being pulled", []string{"pod web app,log", "api web Pending app=ContainerCreating log=ContainerCreating", "kubelet web Pending app=ContainerCreating log=ContainerCreating", "runtime web app=running:c1"}, nil},
		{"a postStart hook runs", []string{"pod web app postStart", "api web Pending app=ContainerCreating", "kubelet web Pending app=ContainerCreating", "runtime web app=running:c1"}, nil},
		{"a postStart hook runs after a restart", []string{"pod web app postStart", "api web Running app=exited:c1:0:1", "kubelet web Running app=exited:c1:0:1", "runtime web app=exited:c1:0:1:2m app=running:c2:1:0:1m"}, nil},
		{"the first container of a pod that is stopped", []string{"pod web app,log deleted=-10m", "api web Running ready app=running:c1 log=running:c2", "kubelet web Running ready app=running:c1 log=running:c2", "runtime web app=exited:c1:0:0:1s log=running:c2"},
			func(s *story) {
				*s.facts.APIPods["uid-web"].Pod.Spec.TerminationGracePeriodSeconds = 600
				*s.facts.KubeletPods["uid-web"].Pod.Spec.TerminationGracePeriodSeconds = 600
			}},
		{"ended in the API, and stopped within its grace", []string{"pod web app", "api web Failed app=exited:c1", "kubelet web Failed app=exited:c1", "runtime web app=running:c1"},
			func(s *story) {
				s.facts.KubeletStatuses = false
				*s.facts.APIPods["uid-web"].Pod.Spec.TerminationGracePeriodSeconds = 600
			}},
		{"evicted, and its containers have their grace", []string{"pod web app", "api web Running ready app=running:c1", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"},
			func(s *story) {
				for _, pod := range []*v1.Pod{s.facts.APIPods["uid-web"].Pod, s.facts.KubeletPods["uid-web"].Pod} {
					*pod.Spec.TerminationGracePeriodSeconds = 600
					pod.Status.Conditions[0].Status, pod.Status.Conditions[0].Reason = v1.ConditionFalse, "PodFailed"
				}
			}},
		{"a readiness gate that has opened", []string{"pod web app", "api web Running ready app=running:c1", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"},
			func(s *story) {
				for _, pod := range []*v1.Pod{s.facts.APIPods["uid-web"].Pod, s.facts.KubeletPods["uid-web"].Pod} {
					pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "gate"}}
					pod.Status.Conditions[0].Status = v1.ConditionFalse
					pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: "gate", Status: v1.ConditionTrue})
				}
			}},
		{"deleted within its grace", []string{"pod web app deleted=-10m", "api web Running ready app=running:c1", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"}, nil},

		// Pods that have hardly begun.
		{"not admitted yet", []string{"pod web app", "api web Pending", "kubelet web Pending"}, nil},
		{"rejected", []string{"pod web app", "api web Failed", "kubelet web Failed"}, nil},
		{"bound, and the kubelet is starting", []string{"pod web app", "api web Running ready app=running:c1", "runtime web app=running:c1"}, func(s *story) {
			s.change(func(now time.Time, f *audit.Facts) { f.Process.Started = now.Add(-time.Second) })
		}},

		// Static pods.
		{"a static pod and its mirror", []string{"pod web app mirror manifest", "api web Running ready app=running:c1", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"}, nil},
		{"a static pod whose mirror is missing", []string{"pod web app mirror manifest", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"}, nil},
		{"a static pod without a mirror, and the kubelet is silent", []string{"node silent=kubelet", "pod web app mirror manifest", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"}, nil},
		{"a mirror that is being deleted", []string{"pod web app mirror manifest deleted=10m", "api web Running ready app=running:c1", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"}, nil},
		{"a mirror of a static pod from a URL", []string{"pod web app mirror", "api web Running ready app=running:c1"}, onAPI(func(p *v1.Pod) { p.Annotations[podstatus.SourceAnnotation] = "http" })},
		{"manifests that were not read", []string{"pod web app mirror", "api web Running ready app=running:c1", "kubelet web Running ready app=running:c1", "runtime web app=running:c1"}, func(s *story) { s.facts.ManifestsKnown = false }},

		// Sides that do not answer are unknown, not empty.
		{"no API", nil, all(says("node silent=api"), func(s *story) { s.facts.APIPods = nil })},
		{"neither API nor kubelet", nil, all(says("node silent=api silent=kubelet"), func(s *story) { s.facts.APIPods, s.facts.KubeletPods = nil, nil })},
		{"no kubelet", nil, all(says("node silent=kubelet"), func(s *story) { s.facts.KubeletPods = nil })},
		{"no runtime", nil, all(says("node silent=runtime"), func(s *story) { s.facts.Containers, s.facts.Sandboxes = nil, nil })},
		{"no machine", nil, all(says("node silent=machine"), func(s *story) { s.facts.Process, s.facts.ManifestsKnown = nil, false })},
		{"old facts of a silent runtime", nil, all(says("node silent=runtime", "runtime web app=exited:c1 log=running:c2"))},
		{"old facts of a silent kubelet", nil, all(says("node silent=kubelet", "kubelet web Running app=CrashLoopBackOff:c0:7 log=running:c2"))},
		{"old facts of a silent API", nil, all(says("node silent=api", "api web Running ready app=running:c0 log=running:c2"))},
		{"a directory, and the kubelet is silent", nil, says("node silent=kubelet", "machine old volume=data")},
		{"a directory of a pod that runs", nil, says("runtime old app=created:c8", "machine old volume=data")},
		{"a clock that is not known", nil, func(s *story) { s.facts.Clock = time.Hour }},
		{"a clock that is known badly", nil, func(s *story) {
			s.facts.Clock, s.facts.ClockError, s.facts.ClockAt = 12*time.Second, 3*time.Second, ago("0s")
		}},
		{"no lease", nil, func(s *story) { s.facts.Lease = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := calm(c.lines...)
			if c.change != nil {
				c.change(s)
			}
			a := audit.NewAuditor(audit.AuditorOptions{})
			for after := time.Duration(0); after <= 5*time.Minute; after += time.Second {
				for _, d := range a.Audit(s.at(after)).Differences {
					if d.Drift {
						t.Fatalf("after %v: %s: %s %v", after, d.Kind, d.Message, d.Evidence)
					}
				}
			}
		})
	}
}

// TestNothingPanicsOnOddFacts: facts may lack anything.
func TestNothingPanicsOnOddFacts(t *testing.T) {
	odd := audit.Facts{}
	odd.APIPods = map[types.UID]audit.Sighting{"a": {}, "b": {Pod: &v1.Pod{}}}
	odd.KubeletPods = map[types.UID]audit.Sighting{"a": {}, "b": {Pod: &v1.Pod{}}}
	odd.Containers = map[string]audit.Container{"x": {UID: "b"}, "y": {UID: "c", State: audit.ContainerRunning}}
	odd.PodDirs = map[types.UID]audit.PodDir{"d": {}}
	for _, known := range []bool{false, true} {
		if known {
			good := audit.Answer{At: epoch}
			odd.APIAnswer, odd.KubeletAnswer, odd.RuntimeAnswer, odd.MachineAnswer = good, good, good, good
		}
		audit.Compare(odd)
		audit.Pictures(odd, "b")
		audit.NewAuditor(audit.AuditorOptions{}).Audit(odd)
	}
}

// TestSilentSidesAreNotEmpty: not even a difference is concluded from what a silent side does not have.
func TestSilentSidesAreNotEmpty(t *testing.T) {
	for _, silent := range []string{"silent=api", "silent=kubelet", "silent=runtime", "silent=machine", "silent=api silent=kubelet", "silent=kubelet silent=runtime", "silent=api silent=runtime silent=machine"} {
		s := calm()
		s.tell("node " + silent)
		if s.facts.APIAnswer.Err != "" {
			s.facts.APIPods, s.facts.NodeObject, s.facts.Lease = nil, nil, nil
		}
		if s.facts.KubeletAnswer.Err != "" {
			s.facts.KubeletPods = nil
		}
		if s.facts.RuntimeAnswer.Err != "" {
			s.facts.Containers, s.facts.Sandboxes = nil, nil
		}
		for _, d := range audit.Compare(s.at(time.Minute)) {
			t.Errorf("%s: %s: %s", silent, d.Kind, d.Message)
		}
	}
}
