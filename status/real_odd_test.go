//go:build real

package status_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/status"
)

// odd is a status as the agents of others send it.
type odd struct {
	name string
	make func(*v1.PodStatus)
	// invalid is the field for which SetPodStatus refuses it, refused are those that the server
	// refuses, so that the first change costs one more request.
	invalid string
	refused []string
}

var oddStatuses = []odd{
	{name: "complete", make: func(*v1.PodStatus) {}},
	{name: "podIP without podIPs", make: func(s *v1.PodStatus) { s.PodIPs = nil }},
	{name: "podIPs without podIP", make: func(s *v1.PodStatus) { s.PodIP = "" }},
	{name: "podIP that is not of the podIPs", make: func(s *v1.PodStatus) { s.PodIP = "10.9.9.9" }},
	{name: "two families", make: func(s *v1.PodStatus) { s.PodIPs = append(s.PodIPs, v1.PodIP{IP: "fd00::1"}) }},
	{name: "two of one family", make: func(s *v1.PodStatus) { s.PodIPs = append(s.PodIPs, v1.PodIP{IP: "10.9.9.9"}) }, refused: []string{"status.podIPs", "status.podIP"}},
	{name: "podIP that is none", make: func(s *v1.PodStatus) { s.PodIP, s.PodIPs = "<none>", nil }, refused: []string{"status.podIPs", "status.podIP"}},
	{name: "hostIP without hostIPs", make: func(s *v1.PodStatus) { s.HostIPs = nil }},
	{name: "hostIPs without hostIP", make: func(s *v1.PodStatus) { s.HostIP = "" }},
	{name: "no addresses", make: func(s *v1.PodStatus) { s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = "", nil, "", nil }},
	{name: "empty podIPs entry", make: func(s *v1.PodStatus) { s.PodIPs = []v1.PodIP{{}} }, invalid: "status.podIPs[0].ip"},
	{name: "QoS class of another pod", make: func(s *v1.PodStatus) { s.QOSClass = v1.PodQOSGuaranteed }, refused: []string{"status.qosClass"}},
	{name: "no conditions", make: func(s *v1.PodStatus) { s.Conditions = nil }},
	{name: "Ready alone", make: func(s *v1.PodStatus) { s.Conditions = s.Conditions[3:4] }},
	{name: "Ready twice", make: func(s *v1.PodStatus) { s.Conditions = append(s.Conditions, s.Conditions[3]) }},
	{name: "condition without a status", make: func(s *v1.PodStatus) { s.Conditions[0].Status = "" }},
	{name: "condition of the agent's own", make: func(s *v1.PodStatus) {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: "example.com/attached", Status: v1.ConditionTrue})
	}},
	{name: "condition of others", make: func(s *v1.PodStatus) {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: "example.com/other", Status: v1.ConditionTrue})
	}},
	{name: "condition without a type", make: func(s *v1.PodStatus) { s.Conditions[0].Type = "" }, invalid: "status.conditions[0].type"},
	{name: "no container statuses", make: func(s *v1.PodStatus) { s.ContainerStatuses = nil }},
	{name: "container without an ID", make: func(s *v1.PodStatus) { s.ContainerStatuses[0].ContainerID = "" }},
	{name: "container ID without a scheme", make: func(s *v1.PodStatus) { s.ContainerStatuses[0].ContainerID = "abc" }},
	{name: "container without a state", make: func(s *v1.PodStatus) { s.ContainerStatuses[0].State = v1.ContainerState{} }},
	{name: "container without a name", make: func(s *v1.PodStatus) { s.ContainerStatuses[0].Name = "" }, invalid: "status.containerStatuses[0].name"},
	{name: "container twice", make: func(s *v1.PodStatus) { s.ContainerStatuses = append(s.ContainerStatuses, s.ContainerStatuses[0]) }, invalid: "status.containerStatuses[1].name"},
	{name: "container in two states", make: func(s *v1.PodStatus) {
		s.ContainerStatuses[0].State.Terminated = &v1.ContainerStateTerminated{}
	}, invalid: "status.containerStatuses[0].state"},
	{name: "container that is not in the spec", make: func(s *v1.PodStatus) {
		s.ContainerStatuses = append(s.ContainerStatuses, v1.ContainerStatus{Name: "stray"})
	}},
	{name: "regular container as init container", make: func(s *v1.PodStatus) { s.InitContainerStatuses = s.ContainerStatuses }},
	{name: "ephemeral container that is not in the spec", make: func(s *v1.PodStatus) {
		s.EphemeralContainerStatuses = []v1.ContainerStatus{{Name: "debugger"}}
	}},
	{name: "negative restart count", make: func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount = -1 }, invalid: "status.containerStatuses[0].restartCount"},
	{name: "exit code beyond a byte", make: func(s *v1.PodStatus) {
		s.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{ExitCode: -1073741510}
	}},
	{name: "resources of the container", make: func(s *v1.PodStatus) {
		s.ContainerStatuses[0].Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("0.1"), "memory": resource.MustParse("1024Mi")}}
		s.ContainerStatuses[0].AllocatedResources = v1.ResourceList{"cpu": resource.MustParse("100m")}
	}},
	{name: "phase that does not exist", make: func(s *v1.PodStatus) { s.Phase = "Terminating" }, invalid: "status.phase"},
	{name: "phase in small letters", make: func(s *v1.PodStatus) { s.Phase = "running" }, invalid: "status.phase"},
	{name: "phase Unknown", make: func(s *v1.PodStatus) { s.Phase = v1.PodUnknown }},
	{name: "no phase", make: func(s *v1.PodStatus) { s.Phase = "" }},
	{name: "times with fractions and zones", make: func(s *v1.PodStatus) {
		now := metav1.NewTime(time.Now().In(time.FixedZone("odd", 5*3600+1800)))
		s.StartTime, s.Conditions[0].LastProbeTime, s.Conditions[0].LastTransitionTime = &now, now, now
		s.ContainerStatuses[0].State.Running.StartedAt = now
	}},
	{name: "start time in the future", make: func(s *v1.PodStatus) { s.StartTime = &metav1.Time{Time: time.Now().Add(time.Hour)} }},
	{name: "text that is not UTF-8", make: func(s *v1.PodStatus) { s.Message += " \xff\xfe" }},
	{name: "a message of 100 kB", make: func(s *v1.PodStatus) { s.Message += strings.Repeat("x", 100_000) }},
	{name: "nominated node", make: func(s *v1.PodStatus) { s.NominatedNodeName = "elsewhere" }, refused: []string{"status.nominatedNodeName"}},
	{name: "observed generation of another time", make: func(s *v1.PodStatus) { s.ObservedGeneration = 77 }},
	{name: "claims, which are not the node's", make: func(s *v1.PodStatus) { s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu"}} }},
	{name: "nothing but a phase", make: func(s *v1.PodStatus) { *s = v1.PodStatus{Phase: v1.PodRunning, Message: s.Message} }},
	{name: "condition texts that are not UTF-8", make: func(s *v1.PodStatus) { s.Conditions[0].Reason, s.Conditions[0].Message = "R\xff", "m\xff" }},
	{name: "container texts that are not UTF-8", make: func(s *v1.PodStatus) {
		c := &s.ContainerStatuses[0]
		c.Image, c.ImageID, c.ContainerID = "i\xff", "d\xff", "process://\xff"
		c.LastTerminationState.Terminated = &v1.ContainerStateTerminated{Reason: "R\xff", Message: "m\xff"}
	}},
	{name: "a NUL in the message", make: func(s *v1.PodStatus) { s.Message += "\x00" }},
	{name: "a reason of 5 kB in a condition", make: func(s *v1.PodStatus) { s.Conditions[0].Reason = strings.Repeat("R", 5000) }},
	{name: "condition of others whose type is no name", make: func(s *v1.PodStatus) {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: "not a name!", Status: v1.ConditionTrue})
	}},
	{name: "condition status that does not exist", make: func(s *v1.PodStatus) { s.Conditions[0].Status = "Maybe" }},
	{name: "conditions without times", make: func(s *v1.PodStatus) {
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime, s.Conditions[i].LastProbeTime = metav1.Time{}, metav1.Time{}
		}
	}},
	{name: "conditions with times in the future", make: func(s *v1.PodStatus) {
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(time.Hour))
		}
	}},
	{name: "empty lists in the place of none", make: func(s *v1.PodStatus) {
		s.InitContainerStatuses, s.EphemeralContainerStatuses = []v1.ContainerStatus{}, []v1.ContainerStatus{}
	}},
	{name: "a message of 4 MB", make: func(s *v1.PodStatus) { s.Message += strings.Repeat("x", 4<<20) }, invalid: "status.message"},
}

// Each change of an odd status costs one request, or is refused with the field that is wrong.
func TestRealServer_OddStatuses(t *testing.T) {
	server := shared.Server(t)
	n := startNode(t, server, "odd", func(o *status.Options) {
		o.OwnedConditions = []v1.PodConditionType{"example.com/attached"}
		o.ResyncPeriod, o.RequestTimeout = time.Hour, patience // which would add requests on a slow machine
	})
	ns := n.server.Namespace(t)
	for i, odd := range oddStatuses {
		t.Run(odd.name, func(t *testing.T) {
			pod := n.create(ns, fmt.Sprintf("pod-%02d", i))
			const changes = 4
			begin := time.Now()
			before := n.requests.writes.Load() + n.requests.reads.Load()
			for change := range changes {
				s := runningStatus(pod, change%2 == 0)
				s.Message = fmt.Sprint("change ", change)
				odd.make(&s)
				_, err := n.manager.SetPodStatus(pod, s)
				if odd.invalid != "" {
					invalid := &status.InvalidStatusError{}
					if !errors.As(err, &invalid) || invalid.Field != odd.invalid {
						t.Errorf("got %v, want a refusal of %s", err, odd.invalid)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				n.flush()
				n.await(ns, pod.Name, "as reported", func(p *v1.Pod) bool {
					return strings.HasPrefix(p.Status.Message, fmt.Sprint("change ", change))
				})
			}
			got := n.requests.writes.Load() + n.requests.reads.Load() - before
			want := int64(changes)
			if odd.invalid != "" {
				want = 0
			}
			if odd.refused != nil {
				want++ // to learn what is refused
			}
			most := want
			if odd.refused != nil { // what is refused is tried again once a minute, of which a fifth may be taken off
				most += 2 * int64(time.Since(begin)/(48*time.Second))
			}
			if got < want || got > most {
				t.Errorf("%d requests for %d changes, want %d", got, changes, want)
			}
			var refused []string
			for _, p := range n.manager.Pending() {
				if p.Name == pod.Name {
					refused = p.Refused
				}
			}
			if !slices.Equal(refused, odd.refused) {
				t.Errorf("refused are %v, want %v", refused, odd.refused)
			}
			n.manager.Forget(pod.UID)
		})
	}
	if fights := n.manager.Fights(); len(fights) > 0 {
		t.Errorf("fights: %+v", fights)
	}
}
