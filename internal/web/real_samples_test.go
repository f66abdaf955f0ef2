//go:build real

package web_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/podstatus"
)

func ago(d time.Duration) *time.Time {
	at := time.Now().Add(-d).UTC().Truncate(time.Millisecond)
	return &at
}

func aNode() view.NodeDetail {
	since := metav1.NewTime(*ago(26 * time.Hour))
	heard := metav1.NewTime(*ago(8 * time.Second))
	condition := func(t v1.NodeConditionType, status v1.ConditionStatus, reason string) v1.NodeCondition {
		return v1.NodeCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: since, LastHeartbeatTime: heard}
	}
	list := func(cpu, memory, pods string) v1.ResourceList {
		l := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
		if pods != "" {
			l[v1.ResourcePods] = resource.MustParse(pods)
		}
		return l
	}
	return view.NodeDetail{
		Name: "edge-17", UID: "0b7e6d1c", Version: "v0.2.0", Runtime: "process",
		Conditions: []v1.NodeCondition{
			condition(v1.NodeReady, v1.ConditionTrue, "StatusdReady"), condition(v1.NodeMemoryPressure, v1.ConditionFalse, "SufficientMemory"),
			condition(v1.NodeDiskPressure, v1.ConditionFalse, "NoDiskPressure"), condition(v1.NodePIDPressure, v1.ConditionFalse, "SufficientPIDs"),
		},
		Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.3.17"}, {Type: v1.NodeHostName, Address: "edge-17"}},
		Capacity:  list("8", "32Gi", "110"), Allocatable: list("7800m", "30Gi", "110"), Requested: list("3250m", "11Gi", ""),
		Pods:     map[explain.State]int{explain.StateReady: 9, explain.StateNotReady: 2},
		Delivery: view.NodeDelivery{LeaseRenewed: ago(4 * time.Second)},
		Problems: []string{}, History: []view.Record{},
	}
}

// ready is a pod that serves.
func ready(namespace, name string) view.PodDetail {
	created := ago(10*time.Hour + 30*time.Minute) // whose age is the same for the time of a test
	since := created.Add(2 * time.Second)
	started := true
	pod := v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(*created)},
		Spec:       v1.PodSpec{NodeName: "edge-17", Containers: []v1.Container{{Name: "server", Image: "registry.example/web:1.4"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.1.0.4", ContainerStatuses: []v1.ContainerStatus{{
			Name: "server", Ready: true, Started: &started, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}},
		}}},
	}
	d := view.PodDetail{
		PodSummary: view.PodSummary{
			Namespace: namespace, Name: name, UID: types.UID("uid-of-" + namespace + "-" + name), Created: created, Phase: v1.PodRunning, State: explain.StateReady,
			Since: &since, Status: "Running", Ready: 1, Containers: 1, IP: "10.1.0.4",
			Why:      fmt.Sprintf("Pod %s/%s is Ready since %s.", namespace, name, since.Format(time.TimeOnly)),
			Delivery: view.Freshness{Delivery: podstatus.Delivery{Version: 7, Accepted: 7, AcceptedAt: since}},
		},
		Explanation: explain.Explanation{Namespace: namespace, Name: name, State: explain.StateReady, Since: &since},
		ContainerDetails: []view.ContainerDetail{{
			Name: "server", Kind: view.KindMain, Image: "registry.example/web:1.4", State: view.ContainerRunning, Since: &since, Ready: true, Started: true,
			Probes: []view.ProbeDetail{{Kind: view.ProbeReadiness, OK: &started, Probe: podstatus.Probe{Successes: 1080, Answer: "HTTP 200", At: *ago(3 * time.Second)}}},
		}},
		History: startHistory(*created), Pod: &pod,
	}
	return d
}

// startHistory is how a pod with one container becomes ready.
func startHistory(created time.Time) []view.Record {
	var records []view.Record
	add := func(after time.Duration, r view.Record) {
		r.Seq, r.Observed = uint64(len(records)+1), created.Add(after)
		if r.Kind != "Probe" && r.Kind != "Admission" {
			accepted := r.Observed.Add(12 * time.Millisecond)
			r.Accepted = &accepted
		}
		records = append(records, r)
	}
	add(0, view.Record{Kind: "Admission", To: "admitted"})
	add(0, view.Record{Kind: "Phase", To: "Pending"})
	for _, c := range []string{"PodScheduled", "Initialized"} {
		add(0, view.Record{Kind: "Condition", Subject: c, To: "True"})
	}
	for _, c := range []string{"ContainersReady", "Ready"} {
		add(0, view.Record{Kind: "Condition", Subject: c, To: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [server]"})
	}
	add(0, view.Record{Kind: "Container", Container: "server", To: "waiting", Reason: "ContainerCreating"})
	add(900*time.Millisecond, view.Record{Kind: "Container", Container: "server", From: "waiting", To: "running"})
	add(900*time.Millisecond, view.Record{Kind: "Phase", From: "Pending", To: "Running"})
	add(1900*time.Millisecond, view.Record{Kind: "Probe", Subject: "readiness", Container: "server", To: "passed"})
	add(2*time.Second, view.Record{Kind: "Ready", Container: "server", From: "not ready", To: "ready"})
	for _, c := range []string{"ContainersReady", "Ready"} {
		add(2*time.Second, view.Record{Kind: "Condition", Subject: c, From: "False", To: "True"})
	}
	return records
}

const refused = `dial tcp 10.1.0.4:8080: connect: connection refused`

// notReady is the pod after its readiness probe has failed for a while.
func notReady(pod view.PodDetail, since time.Time) view.PodDetail {
	pod.State, pod.Since, pod.Ready = explain.StateNotReady, &since, 0
	next := &explain.Next{Wait: "the container becomes ready when the probe succeeds; it is probed every 5s", Do: "check that the container listens on the port that is probed"}
	probe := explain.Cause{
		Code: explain.CodeReadinessProbeFailing, Container: "server", Since: &since, Next: next,
		Text: `its readiness probe (GET http://:8080/healthz) has failed 14 times for 1 min 10 s, last answer "` + refused + `"`,
	}
	cause := explain.Cause{Code: explain.CodeContainersNotReady, Container: "server", Since: &since, Text: `container "server" is not ready`, Causes: []explain.Cause{probe}}
	pod.Explanation.State, pod.Explanation.Since, pod.Explanation.Causes = pod.State, pod.Since, []explain.Cause{cause}
	pod.Why = fmt.Sprintf("Pod %s/%s is not Ready since %s, because %s: %s. Next: %s. To do: %s.", pod.Namespace, pod.Name, since.Format(time.TimeOnly), cause.Text, probe.Text, next.Wait, next.Do)
	no := false
	pod.ContainerDetails = []view.ContainerDetail{pod.ContainerDetails[0]}
	pod.ContainerDetails[0].Ready = false
	pod.ContainerDetails[0].Probes = []view.ProbeDetail{{Kind: view.ProbeReadiness, OK: &no, Probe: podstatus.Probe{Failures: 14, Answer: refused, At: *ago(2 * time.Second)}}}
	pod.History = append([]view.Record{}, pod.History...)
	for _, r := range []view.Record{
		{Kind: "Probe", Subject: "readiness", Container: "server", From: "passed", To: "failed", Message: refused},
		{Kind: "Ready", Container: "server", From: "ready", To: "not ready"},
		{Kind: "Condition", Subject: "ContainersReady", From: "True", To: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [server]"},
		{Kind: "Condition", Subject: "Ready", From: "True", To: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [server]"},
	} {
		r.Seq, r.Observed = uint64(len(pod.History)+1), since
		accepted := since.Add(9 * time.Millisecond)
		if r.Kind != "Probe" {
			r.Accepted = &accepted
		}
		pod.History = append(pod.History, r)
	}
	return pod
}

// crashing is a pod whose container ends again and again, while the API server is not reached.
func crashing(namespace, name string) view.PodDetail {
	pod := ready(namespace, name)
	since, next := ago(20*time.Second), time.Now().Add(38*time.Second).UTC()
	began := ago(6 * time.Minute)
	pod.State, pod.Since, pod.Created, pod.Ready, pod.Restarts, pod.Status = explain.StateNotReady, since, began, 0, 4, "CrashLoopBackOff"
	last := explain.Cause{Code: explain.CodeExited, Container: "server", Since: since, Text: `its last run ended 20 s ago with exit code 3 and message "no such table: users"`,
		Next: &explain.Next{Wait: "it starts again", At: &next, Do: "read the log of that run"}}
	loop := explain.Cause{Code: explain.CodeCrashLoop, Container: "server", Text: "it is in crash-loop back-off", Causes: []explain.Cause{last}}
	cause := explain.Cause{Code: explain.CodeContainersNotReady, Container: "server", Text: `container "server" is not ready`, Causes: []explain.Cause{loop}}
	pod.Explanation.State, pod.Explanation.Since, pod.Explanation.Causes = pod.State, since, []explain.Cause{cause}
	pod.Why = fmt.Sprintf("Pod %s/%s is not Ready since %s, because %s: %s: %s. Next: it starts again in 38 s. To do: read the log of that run.", namespace, name, since.Format(time.TimeOnly), cause.Text, loop.Text, last.Text)
	try := time.Now().Add(8 * time.Second).UTC()
	pod.Delivery = view.Freshness{LagSeconds: 21, Delivery: podstatus.Delivery{Version: 31, Accepted: 29, AcceptedAt: *ago(50 * time.Second), Since: *ago(21 * time.Second), Attempts: 12, Error: "the server is currently unable to handle the request (503)", NextTry: try}}
	pod.Explanation.Delivery = &explain.Cause{Code: explain.CodeRetrying, Since: ago(21 * time.Second), Text: "the API server does not know it yet, because 12 tries failed, the last with 503", Next: &explain.Next{Wait: "it is tried again", At: &try}}
	code := int32(3)
	pod.ContainerDetails = []view.ContainerDetail{{Name: "server", Kind: view.KindMain, Image: "registry.example/web:1.4", State: view.ContainerWaiting, Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container", Since: since, Restarts: 4, ExitCode: &code, NextStart: &next}}
	pod.History = crashHistory(*began, *since)
	return pod
}

func crashHistory(began, end time.Time) []view.Record {
	records := startHistory(began)[:9]
	add := func(at time.Time, r view.Record) {
		r.Seq, r.Observed = uint64(len(records)+1), at
		if accepted := at.Add(15 * time.Millisecond); at.Before(end) {
			r.Accepted = &accepted
		}
		records = append(records, r)
	}
	at := began.Add(4 * time.Second)
	for run, pause := 1, 10*time.Second; at.Before(end); run, pause = run+1, 2*pause {
		add(at, view.Record{Kind: "Container", Container: "server", From: "running", To: "terminated", Reason: "Error", Message: "exit code 3: no such table: users"})
		add(at.Add(time.Second), view.Record{Kind: "Container", Container: "server", From: "terminated", To: "waiting", Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container", pause)})
		if at = at.Add(pause); at.Before(end) {
			add(at, view.Record{Kind: "Restart", Container: "server", From: fmt.Sprint(run - 1), To: fmt.Sprint(run), Reason: "Error", Message: "exit code 3: no such table: users"})
			add(at, view.Record{Kind: "Container", Container: "server", From: "waiting", To: "running"})
			at = at.Add(9 * time.Second)
		}
	}
	add(end, view.Record{Kind: "Container", Container: "server", From: "running", To: "waiting", Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"})
	return records
}

// inState is a pod in another state, with the least that a row needs.
func inState(pod view.PodDetail, state explain.State, status, because string) view.PodDetail {
	since := ago(95 * time.Second)
	pod.State, pod.Since, pod.Status = state, since, status
	pod.Explanation.State, pod.Explanation.Since = state, since
	pod.Why = fmt.Sprintf("Pod %s/%s is %s since %s, because %s.", pod.Namespace, pod.Name, state, since.Format(time.TimeOnly), because)
	pod.Explanation.Causes = []explain.Cause{{Code: explain.CodeWaiting, Text: because, Next: &explain.Next{Wait: "it goes on by itself"}}}
	return pod
}
