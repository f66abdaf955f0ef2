package explain_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
)

// Why there is no pod, or none that is Ready.
func TestWorkload_SaysWhyThereIsNoPod(t *testing.T) {
	created := func(message string) []explain.Warning {
		return []explain.Warning{{Reason: "FailedCreate", Message: message, Last: ago(time.Minute)}}
	}
	ready := facts(with(v1.PodRunning, running(time.Minute), v1.ConditionTrue))
	for name, c := range map[string]struct {
		w     explain.Workload
		state explain.State
		want  []string
	}{
		"quota": {explain.Workload{Kind: "Deployment", Wanted: 3, Warnings: created(`Error creating: pods "web-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`)},
			explain.StateNotReady, []string{"Deployment shop/web is not Ready, because 3 of 3 pods cannot be created: pods \"web-1\" is forbidden: exceeded quota: small", "raise the quota", "kubectl describe resourcequota -n shop"}},
		"pod security": {explain.Workload{Kind: "ReplicaSet", Wanted: 1, Warnings: created(`Error creating: pods "web-1" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`)},
			explain.StateNotReady, []string{"1 of 1 pod cannot be created", "Pod Security level", "--show-labels"}},
		"given up": {explain.Workload{Kind: "Job", Wanted: 1, Failed: "BackoffLimitExceeded: Job has reached the specified backoff limit", Pods: []explain.Facts{facts(with(v1.PodFailed, ended("Error", 1, "no such table"), v1.ConditionFalse))}},
			explain.StateFailed, []string{"Job shop/web has failed, because it has given up: BackoffLimitExceeded", `as pod "web"`, "exit code 1: no such table"}},
		"complete":    {explain.Workload{Kind: "Job", Wanted: 1, Complete: true}, explain.StateSucceeded, []string{"Job shop/web has succeeded"}},
		"suspended":   {explain.Workload{Kind: "Job", Wanted: 1, Suspended: true}, explain.StateNotReady, []string{"it is suspended", "kubectl patch -n shop job/web"}},
		"no replicas": {explain.Workload{Kind: "Deployment"}, explain.StateNotReady, []string{"it asks for no pods", "kubectl scale --replicas=1 -n shop deployment/web"}},
		"nothing":     {explain.Workload{Kind: "Deployment", Wanted: 2}, explain.StateNotReady, []string{"it has none of its 2 pods", "controller manager"}},
		"ready":       {explain.Workload{Kind: "Deployment", Wanted: 1, Ready: 1, Pods: []explain.Facts{ready}}, explain.StateReady, []string{"Deployment shop/web is Ready."}},
		"one of two crashes": {explain.Workload{Kind: "StatefulSet", Wanted: 2, Ready: 1, Pods: []explain.Facts{ready, crashing("no such table")}},
			explain.StateNotReady, []string{`1 of 2 pods is not Ready, as pod "web": container "db" is not ready: exit code 1: no such table`, "kubectl logs"}},
	} {
		c.w.Now, c.w.Namespace, c.w.Name = now, "shop", "web"
		e := c.w.Explain()
		got := e.Text(time.UTC)
		if e.State != c.state {
			t.Errorf("%s: state %s, want %s", name, e.State, c.state)
		}
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in %s", name, w, got)
			}
		}
		checkComplete(t, e)
	}
}

// Several causes are paragraphs, and the log comes last.
func TestText_ParagraphsAndLog(t *testing.T) {
	f := crashing("no such table: users")
	f.Pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "x/y"}}
	c := f.Containers["db"]
	c.Log = &explain.Log{Previous: true, Lines: []string{"starting", "no such table: users"}}
	f.Containers["db"] = c
	const want = `Pod default/web is not Ready.

- Container "db" is not ready: exit code 1: no such table: users · 15 restarts in 9 min, the last after 1 s · next start in 4 min 58 s.
  To do: read the log of that run (kubectl logs -n default web -c db --previous).

- Readiness gate "x/y" was never set.
  To do: check the controller that is to set the condition "x/y" (kubectl get pod -n default web -o yaml --show-managed-fields).

The end of the log of container "db", of the run before:
  | starting
  | no such table: users`
	if got := explain.Pod(f).Text(time.UTC); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
