package audit_test

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/podstatus"
)

// lieAt is when a lie is planted: the victim, the first pod, runs unchanged by then.
const lieAt = 100 * time.Second

// A lie makes one side untrue from lieAt on, and returns the drift that must be found.
type lie struct {
	name   string
	victim string // its sort
	own    bool   // needs a kubelet that shows its own statuses
	// restarts: the container of the victim is restarted at lieAt.
	restarts bool
	plant    func(t *rapid.T, n *simNode, victim *simPod) []string
}

func drift(k audit.Kind, s *simPod, container string) []string {
	pod := s.pod
	if s.mirror != nil {
		pod = s.mirror
	}
	return []string{fmt.Sprintf("%s %s/%s %s", k, pod.UID, pod.Name, container)}
}

// inRuntime changes the victim's containers in the runtime.
func inRuntime(s *simPod, change func([]audit.Container) []audit.Container) {
	s.lieRuntime = func(now time.Duration, list []audit.Container) []audit.Container {
		if now < lieAt {
			return list
		}
		return change(list)
	}
}

// inFacts changes the facts.
func inFacts(n *simNode, change func(now time.Duration, f *audit.Facts)) {
	before := n.change
	n.change = func(now time.Duration, f *audit.Facts) {
		if before != nil {
			before(now, f)
		}
		if now >= lieAt {
			change(now, f)
		}
	}
}

func maybeSilent(t *rapid.T, n *simNode) {
	if !rapid.Bool().Draw(t, "kubelet silent") {
		return
	}
	stopped := rapid.Bool().Draw(t, "stopped")
	inFacts(n, func(_ time.Duration, f *audit.Facts) {
		f.KubeletAnswer = audit.Answer{From: f.KubeletAnswer.From, At: at(lieAt - time.Second), Err: "connection refused", Silent: at(lieAt)}
		f.Process.Stopped = stopped
	})
}

func exitOf(list []audit.Container, name string) []audit.Container {
	for i := range list {
		if list[i].Name == name && list[i].State == audit.ContainerRunning {
			list[i].State, list[i].Finished, list[i].ExitCode = audit.ContainerExited, at(lieAt), 137
		}
	}
	return list
}

var lies = []lie{
	{"an exit that the kubelet does not see", "several", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inRuntime(s, func(list []audit.Container) []audit.Container { return exitOf(list, "log") })
		maybeSilent(t, n)
		return drift(audit.KubeletBehindRuntime, s, "log")
	}},
	{"an exit of a static pod's container", "static", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inRuntime(s, func(list []audit.Container) []audit.Container { return exitOf(list, "app") })
		maybeSilent(t, n)
		return drift(audit.KubeletBehindRuntime, s, "app")
	}},
	{"an exit of a sidecar", "sidecar", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inRuntime(s, func(list []audit.Container) []audit.Container { return exitOf(list, "mesh") })
		return drift(audit.KubeletBehindRuntime, s, "mesh")
	}},
	{"a restart that the kubelet does not see", "plain", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inRuntime(s, func(list []audit.Container) []audit.Container {
			next := list[len(list)-1]
			next.ID, next.Attempt, next.Created, next.Started = "next", next.Attempt+1, at(lieAt), at(lieAt)
			return append(exitOf(list, "app"), next)
		})
		maybeSilent(t, n)
		return drift(audit.UnreportedRestart, s, "app")
	}},
	{"one container vanished", "several", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inRuntime(s, func(list []audit.Container) []audit.Container {
			return slices.DeleteFunc(list, func(c audit.Container) bool { return c.Name == "proxy" })
		})
		maybeSilent(t, n)
		return drift(audit.RunningWithoutContainer, s, "proxy")
	}},
	{"all containers vanished", "several", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inRuntime(s, func([]audit.Container) []audit.Container { return nil })
		maybeSilent(t, n)
		return drift(audit.RunningWithoutContainer, s, "")
	}},
	{"a write that the API did not take", "several", true, true, func(_ *rapid.T, _ *simNode, s *simPod) []string {
		s.apiFrozen = lieAt
		return drift(audit.APIBehindKubelet, s, "app")
	}},
	{"a mirror that the API did not take", "static", false, true, func(_ *rapid.T, _ *simNode, s *simPod) []string {
		s.apiFrozen = lieAt
		return drift(audit.APIBehindKubelet, s, "app")
	}},
	{"another writer", "plain", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		field := rapid.SampledFrom([]string{"phase", "Ready", "containers"}).Draw(t, "field")
		s.lieAPI = func(now time.Duration, pod *v1.Pod) {
			if now >= lieAt {
				overwrite(pod, field)
			}
		}
		if field == "containers" {
			return drift(audit.ForeignWriter, s, "app")
		}
		return drift(audit.ForeignWriter, s, "")
	}},
	{"a container without a pod", "several", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inFacts(n, func(_ time.Duration, f *audit.Facts) {
			delete(f.APIPods, s.pod.UID)
			delete(f.KubeletPods, s.pod.UID)
			delete(f.PodDirs, s.pod.UID)
		})
		maybeSilent(t, n)
		return drift(audit.ContainerWithoutPod, s, "")
	}},
	{"a deletion that does not end", "plain", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		finalizer := rapid.Bool().Draw(t, "finalizer")
		inFacts(n, func(_ time.Duration, f *audit.Facts) {
			pod := f.APIPods[s.pod.UID].Pod
			pod.DeletionTimestamp = &metav1.Time{Time: at(lieAt + 30*time.Second)}
			if finalizer {
				pod.Finalizers = []string{"example.com/backup"}
			}
		})
		return drift(audit.StuckTerminating, s, "")
	}},
	{"a directory of no pod", "plain", false, false, func(_ *rapid.T, n *simNode, _ *simPod) []string {
		inFacts(n, func(_ time.Duration, f *audit.Facts) {
			f.PodDirs["uid-x"] = audit.PodDir{Path: "/var/lib/kubelet/pods/uid-x", Volumes: []string{"data"}, Changed: at(lieAt)}
		})
		return []string{string(audit.OrphanedPodDirectory) + " uid-x/ "}
	}},
	{"a mirror of no manifest", "static", false, false, func(t *rapid.T, n *simNode, s *simPod) []string {
		inRuntime(s, func([]audit.Container) []audit.Container { return nil })
		inFacts(n, func(_ time.Duration, f *audit.Facts) {
			f.Manifests = slices.DeleteFunc(f.Manifests, func(m audit.Manifest) bool { return m.Name == s.pod.Name })
			delete(f.KubeletPods, s.pod.UID)
		})
		maybeSilent(t, n)
		return drift(audit.MirrorWithoutManifest, s, "")
	}},
	{"a node that is gone", "plain", false, false, func(_ *rapid.T, n *simNode, _ *simPod) []string {
		inFacts(n, func(_ time.Duration, f *audit.Facts) {
			f.NodeObject.Status.Conditions[0].Status = v1.ConditionUnknown
			f.NodeObject.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: at(lieAt)}
		})
		return nil // filled in below: every pod that is Ready
	}},
	{"a lease that is not renewed", "plain", false, false, func(_ *rapid.T, n *simNode, _ *simPod) []string {
		inFacts(n, func(_ time.Duration, f *audit.Facts) {
			f.Lease.Spec.RenewTime, f.LeaseAt = &metav1.MicroTime{Time: at(lieAt)}, at(lieAt)
		})
		return []string{string(audit.LeaseStale) + " / "}
	}},
	{"a clock that is wrong", "plain", false, false, func(_ *rapid.T, n *simNode, _ *simPod) []string {
		inFacts(n, func(_ time.Duration, f *audit.Facts) { f.Clock = -2 * time.Minute })
		return []string{string(audit.ClockSkew) + " / "}
	}},
}

// overwrite changes what belongs to the kubelet as another writer would.
func overwrite(pod *v1.Pod, field string) {
	raw := `{"f:status":{"f:phase":{}}}`
	switch field {
	case "phase":
		pod.Status.Phase = v1.PodFailed
	case "Ready":
		raw = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}`
		pod.Status.Conditions = slices.Clone(pod.Status.Conditions)
		podstatus.FindCondition(pod.Status.Conditions, v1.PodReady).Status = v1.ConditionFalse
	case "containers":
		raw = `{"f:status":{"f:containerStatuses":{}}}`
		pod.Status.ContainerStatuses = slices.Clone(pod.Status.ContainerStatuses)
		pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	}
	pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
		Time: &metav1.Time{Time: at(lieAt)}, FieldsV1: metav1.NewFieldsV1(raw)})
}

func checkLie(t *rapid.T, l lie) {
	n := drawNode(t, l.victim)
	n.own = n.own || l.own
	victim := n.pods[0]
	if l.restarts || rapid.Bool().Draw(t, "restarts") {
		// What the kubelet and the API must learn of: a restart of the container.
		victim.extend(lieAt-victim.moments[len(victim.moments)-1].at, func(s *simPod) {
			s.exits(0, "app", 1)
			s.starts(200*time.Millisecond, "app")
		})
	}
	want := l.plant(t, n, victim)
	a := audit.NewAuditor(audit.AuditorOptions{})
	var last audit.Report
	auditUntil(t, a, n, 0, lieAt+210*time.Second, func(now time.Duration, r audit.Report) {
		if got := drifts(r); now < lieAt && len(got) > 0 {
			t.Fatalf("after %v, before the lie: %v", now, got)
		}
		last = r
	})
	if want == nil {
		for _, s := range n.facts(lieAt + 200*time.Second).APIPods {
			if c := podstatus.FindCondition(s.Pod.Status.Conditions, v1.PodReady); c != nil && c.Status == v1.ConditionTrue {
				want = append(want, fmt.Sprintf("%s %s/%s ", audit.ReadyOnDeadNode, s.Pod.UID, s.Pod.Name))
			}
		}
		slices.Sort(want)
	}
	got := drifts(last)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: found %v\nwant %v\nall: %+v", l.name, got, want, last.Differences)
	}
}

// extend adds to a life that was finished, with the longest lags.
func (s *simPod) extend(after time.Duration, add func(*simPod)) {
	s.then(after, func(*moment) {})
	add(s)
	first := len(s.statuses)
	status := s.statuses[first-1]
	for _, m := range s.moments[first:] {
		s.toKubelet, s.toAPI = append(s.toKubelet, m.at+time.Second), append(s.toAPI, m.at+2*time.Second)
		status = s.report(m, status, at(m.at+time.Second))
		s.statuses = append(s.statuses, status)
	}
}
