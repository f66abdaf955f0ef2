package podstatus_test

import (
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/podstatus"
)

func TestShareTakesTheListsThatSayTheSame(t *testing.T) {
	pod := benchPod()
	status := podstatus.Normalize(pod, &pod.Status)
	api := status.DeepCopy()
	shared := podstatus.Share(&status, api)
	if &shared.Conditions[0] != &api.Conditions[0] || &shared.ContainerStatuses[0] != &api.ContainerStatuses[0] ||
		&shared.PodIPs[0] != &api.PodIPs[0] || &shared.HostIPs[0] != &api.HostIPs[0] || shared.StartTime != api.StartTime {
		t.Error("two equal statuses do not share their lists")
	}
}

func TestShareKeepsTheListsThatDiffer(t *testing.T) {
	pod := benchPod()
	status := podstatus.Normalize(pod, &pod.Status)
	for name, change := range map[string]func(*v1.PodStatus){
		"time of a transition":   func(s *v1.PodStatus) { s.Conditions[1].LastTransitionTime = metav1.NewTime(epoch.Add(time.Minute)) },
		"generation":             func(s *v1.PodStatus) { s.Conditions[1].ObservedGeneration++ },
		"a foreign condition":    func(s *v1.PodStatus) { s.Conditions = append(s.Conditions, v1.PodCondition{Type: "example.com/gate"}) },
		"order of conditions":    func(s *v1.PodStatus) { s.Conditions[0], s.Conditions[1] = s.Conditions[1], s.Conditions[0] },
		"readiness":              func(s *v1.PodStatus) { s.ContainerStatuses[1].Ready = false },
		"an address of the pod":  func(s *v1.PodStatus) { s.PodIPs[0].IP = "10.0.0.9" },
		"an address of the host": func(s *v1.PodStatus) { s.HostIPs[0].IP = "192.0.2.9" },
		"start":                  func(s *v1.PodStatus) { s.StartTime = nil },
	} {
		api := status.DeepCopy()
		change(api)
		if shared := podstatus.Share(&status, api); !reflect.DeepEqual(shared, status) {
			t.Errorf("%s: the status has changed:\n got %+v\nwant %+v", name, shared, status)
		}
	}
}

func TestShareSaysTheSameAndWritesIntoNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		status, api := podstatus.Normalize(pod, drawStatus(t)), drawStatus(t)
		if rapid.Bool().Draw(t, "same containers") {
			api.ContainerStatuses = status.DeepCopy().ContainerStatuses
		}
		if rapid.Bool().Draw(t, "same conditions") {
			api.Conditions = status.DeepCopy().Conditions
		}
		statusBefore, apiBefore := status.DeepCopy(), api.DeepCopy()
		shared := podstatus.Share(&status, api)
		if !podstatus.Equal(&status, &shared) || !equality.Semantic.DeepEqual(status.Conditions, shared.Conditions) {
			t.Fatalf("the shared status differs:\n got %+v\nwant %+v", shared, status)
		}
		if !reflect.DeepEqual(&status, statusBefore) || !reflect.DeepEqual(api, apiBefore) {
			t.Fatal("Share wrote into its input")
		}
	})
}
