package worker

import (
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

func running(id, name string, attempt int) runtime.Container {
	return runtime.Container{ID: id, Name: name, Attempt: attempt, State: runtime.Running, StartedAt: noon}
}

func ended(id, name string, attempt int, code int32) runtime.Container {
	return runtime.Container{ID: id, Name: name, Attempt: attempt, State: runtime.Exited, ExitCode: code, Reason: runtime.ReasonError, FinishedAt: noon}
}

func exit(id string, code int32) v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, ContainerID: id}}
}

func TestLastTermination(t *testing.T) {
	pod := planPod("| a", v1.RestartPolicyAlways)
	for _, c := range []struct {
		story string
		found []runtime.Container
		old   v1.ContainerStatus
		want  string // the container ID of the last termination
	}{
		{"the runtime has both", []runtime.Container{running("2", "a", 1), ended("1", "a", 0, 1)}, v1.ContainerStatus{Name: "a", ContainerID: "1"}, "1"},
		{"the runtime has forgotten the one before", []runtime.Container{running("2", "a", 1)}, v1.ContainerStatus{Name: "a", ContainerID: "1", State: exit("1", 1)}, "1"},
		{"reported before", []runtime.Container{running("2", "a", 1)}, v1.ContainerStatus{Name: "a", ContainerID: "2", LastTerminationState: exit("1", 1)}, "1"},
		{"the first", []runtime.Container{running("1", "a", 0)}, v1.ContainerStatus{}, ""},
	} {
		s := sight{pod: pod, known: true, found: runtime.Pod{Containers: c.found}, old: &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{c.old}}}
		got := ""
		if last := s.draft(nil, false).ContainerStatuses[0].LastTerminationState.Terminated; last != nil {
			got = last.ContainerID
		}
		if got != c.want {
			t.Errorf("%s: got last termination of %q, want of %q", c.story, got, c.want)
		}
	}
}

func TestAnInitContainerWithoutRecordsHasSucceededIfTheWorkHasBegun(t *testing.T) {
	pod := planPod("x s* | a", v1.RestartPolicyAlways)
	s := sight{pod: pod, known: true, found: runtime.Pod{Containers: []runtime.Container{running("1", "a", 0)}}, old: &v1.PodStatus{}}
	status := s.draft(nil, false)
	if got := status.InitContainerStatuses[0].State.Terminated; got == nil || got.ExitCode != 0 || got.Reason != runtime.ReasonCompleted {
		t.Errorf("init container: got %+v, want it completed", status.InitContainerStatuses[0].State)
	}
	if got := status.InitContainerStatuses[1].State.Waiting; got == nil {
		t.Errorf("sidecar: got %+v, want it waiting", status.InitContainerStatuses[1].State)
	}
}

func TestMountsAreReported(t *testing.T) {
	pod := planPod("| a", v1.RestartPolicyAlways)
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "conf", MountPath: "/conf", ReadOnly: true}}
	s := sight{pod: pod, old: &v1.PodStatus{}}
	got := s.draft(nil, false).ContainerStatuses[0].VolumeMounts
	if len(got) != 2 || got[0].MountPath != "/data" || got[0].RecursiveReadOnly != nil ||
		got[1].RecursiveReadOnly == nil || *got[1].RecursiveReadOnly != v1.RecursiveReadOnlyDisabled {
		t.Errorf("got %+v, want both, and only the read-only one with a mode", got)
	}
}

func TestEphemeralContainersAreRefused(t *testing.T) {
	pod := planPod("| a", v1.RestartPolicyAlways)
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
	s := sight{pod: pod, old: &v1.PodStatus{}}
	got := s.draft(nil, false).EphemeralContainerStatuses
	if len(got) != 1 || got[0].State.Waiting == nil || got[0].State.Waiting.Message != messageEphemeral {
		t.Errorf("got %+v, want debug waiting with the reason", got)
	}
}

func TestHostNetworkPodsHaveTheAddressesOfTheNode(t *testing.T) {
	pod := planPod("| a", v1.RestartPolicyAlways)
	pod.Spec.HostNetwork = true
	s := sight{pod: pod, old: &v1.PodStatus{}}
	got := s.draft([]string{"192.0.2.1", "2001:db8::1"}, false)
	if got.PodIP != "192.0.2.1" || len(got.PodIPs) != 2 || got.HostIP != "192.0.2.1" || len(got.HostIPs) != 2 {
		t.Errorf("got pod %s %v, host %s %v; want those of the node", got.PodIP, got.PodIPs, got.HostIP, got.HostIPs)
	}
}

func TestTheDisruptionOfAPodIsKept(t *testing.T) {
	pod := planPod("| a", v1.RestartPolicyAlways)
	s := sight{pod: pod, old: &v1.PodStatus{Conditions: []v1.PodCondition{
		{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "PreemptionByScheduler"},
	}}}
	status := s.draft(nil, false)
	s.complete(&status, []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue}}, false)
	for _, want := range []v1.PodConditionType{v1.DisruptionTarget, v1.PodResizePending} {
		if podstatus.FindCondition(status.Conditions, want) == nil {
			t.Errorf("got %+v, want %s among them", status.Conditions, want)
		}
	}
}

func TestHooksFollowRedirectsToTheirOwnHostOnly(t *testing.T) {
	visits := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visits[r.URL.Path]++
		switch r.URL.Path {
		case "/near":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/far":
			http.Redirect(w, r, "http://localhost.invalid/end", http.StatusFound)
		}
	}))
	defer server.Close()
	client := newHookClient()
	for _, path := range []string{"/near", "/far"} {
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		response.Body.Close()
	}
	if visits["/end"] != 1 {
		t.Errorf("visits: got %v, want the end once, by the near redirect", visits)
	}
}
