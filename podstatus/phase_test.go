package podstatus_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

func TestPhase(t *testing.T) {
	const (
		terminal = 1 << iota
		initialized
	)
	for _, row := range []struct {
		story, pod, statuses string
		flags                int
		want                 v1.PodPhase
	}{
		// Regular containers.
		{"nothing reported", "restart=Always app=a", "nil", 0, v1.PodPending},
		{"no containers at all", "restart=Always", "", 0, v1.PodPending},
		{"waiting", "restart=Always app=a", "a:waiting", 0, v1.PodPending},
		{"no state", "restart=Always app=a", "a:none", 0, v1.PodPending},
		{"no state, but an exit before", "restart=Never app=a", "a:none,last(1)", 0, v1.PodPending},
		{"running", "restart=Always app=a", "a:running", 0, v1.PodRunning},
		{"one runs, one waits", "restart=Always app=a app=b", "a:running b:waiting", 0, v1.PodPending},
		{"one runs, one unknown", "restart=Always app=a app=b", "a:running", 0, v1.PodPending},
		{"one runs, one failed for good", "restart=Never app=a app=b", "a:running b:exited(1)", 0, v1.PodRunning},
		{"one ended, one unknown", "restart=Never app=a app=b", "a:exited(0)", 0, v1.PodPending},
		{"a stranger's status does not count", "restart=Always app=a", "ghost:running", 0, v1.PodPending},

		// Restart policies.
		{"Always, exited 0", "restart=Always app=a", "a:exited(0)", 0, v1.PodRunning},
		{"Always, exited 1", "restart=Always app=a", "a:exited(1)", 0, v1.PodRunning},
		{"OnFailure, exited 0", "restart=OnFailure app=a", "a:exited(0)", 0, v1.PodSucceeded},
		{"OnFailure, exited 1", "restart=OnFailure app=a", "a:exited(1)", 0, v1.PodRunning},
		{"OnFailure, one of two failed", "restart=OnFailure app=a app=b", "a:exited(0) b:exited(1)", 0, v1.PodRunning},
		{"Never, exited 0", "restart=Never app=a", "a:exited(0)", 0, v1.PodSucceeded},
		{"Never, exited 1", "restart=Never app=a", "a:exited(1)", 0, v1.PodFailed},
		{"Never, one of two failed", "restart=Never app=a app=b", "a:exited(0) b:exited(1)", 0, v1.PodFailed},

		// Waiting after a termination.
		{"crash loop, Always", "restart=Always app=a", "a:waiting(CrashLoopBackOff),last(1)", 0, v1.PodRunning},
		{"crash loop, OnFailure", "restart=OnFailure app=a", "a:waiting(CrashLoopBackOff),last(1)", 0, v1.PodRunning},
		{"waits after its last exit, Never", "restart=Never app=a", "a:waiting,last(1)", 0, v1.PodFailed},
		{"an exit with 0 before waiting is not yet a success", "restart=Never app=a", "a:waiting,last(0)", 0, v1.PodFailed},

		// Container policies and rules.
		{"own OnFailure in a pod of Never", "restart=Never app=a/OnFailure", "a:exited(1)", 0, v1.PodRunning},
		{"own Never in a pod of Always", "restart=Always app=a/Never", "a:exited(1)", 0, v1.PodFailed},
		{"own Never in a pod of Always, success", "restart=Always app=a/Never", "a:exited(0)", 0, v1.PodSucceeded},
		{"rule", "restart=Never app=a/Never/In(42)->Restart", "a:exited(42)", 0, v1.PodRunning},
		{"rule does not match", "restart=Never app=a/Never/In(42)->Restart", "a:exited(1)", 0, v1.PodFailed},
		{"rule, waiting", "restart=Never app=a/Never/In(42)->Restart", "a:waiting,last(42)", 0, v1.PodRunning},
		{"rule restarts all", "restart=Never app=a/Never/In(42)->RestartAllContainers", "a:exited(42)", 0, v1.PodRunning},
		{"stopped for a restart of all", "restart=Never app=a", "a:exited(137;RestartingAllContainers)", 0, v1.PodRunning},

		// Nothing will be started again.
		{"terminal, Always, exited 0", "restart=Always app=a", "a:exited(0)", terminal, v1.PodSucceeded},
		{"terminal, Always, exited 1", "restart=Always app=a", "a:exited(1)", terminal, v1.PodFailed},
		{"terminal, crash loop", "restart=Always app=a", "a:waiting,last(0)", terminal, v1.PodFailed},
		{"terminal, one still runs", "restart=Always app=a app=b", "a:exited(0) b:running", terminal, v1.PodRunning},
		{"terminal, never started", "restart=Always app=a", "a:waiting", terminal, v1.PodPending},
		{"terminal, static", "restart=Always source=file app=a", "a:exited(0)", terminal, v1.PodRunning},
		{"terminal, static, will not restart anyway", "restart=Never source=file app=a", "a:exited(0)", terminal, v1.PodSucceeded},

		// Init containers.
		{"init unknown", "restart=Always init=i app=a", "a:waiting", 0, v1.PodPending},
		{"init waits", "restart=Always init=i app=a", "i:waiting a:waiting", 0, v1.PodPending},
		{"init runs", "restart=Always init=i app=a", "i:running a:waiting", 0, v1.PodPending},
		{"init has no state", "restart=Always init=i app=a", "i:none a:running", 0, v1.PodPending},
		{"init done", "restart=Always init=i app=a", "i:exited(0) a:running", 0, v1.PodRunning},
		{"init failed, Always", "restart=Always init=i app=a", "i:exited(1) a:waiting", 0, v1.PodPending},
		{"init failed, OnFailure", "restart=OnFailure init=i app=a", "i:exited(1) a:waiting", 0, v1.PodPending},
		{"init failed, Never", "restart=Never init=i app=a", "i:exited(1) a:waiting", 0, v1.PodFailed},
		{"init waits after failing, Never", "restart=Never init=i app=a", "i:waiting,last(1) a:waiting", 0, v1.PodFailed},
		{"init waits after failing, Always", "restart=Always init=i app=a", "i:waiting,last(1) a:waiting", 0, v1.PodPending},
		{"init waits after success", "restart=Always init=i app=a", "i:waiting,last(0) a:running", 0, v1.PodRunning},
		{"init failed, own rule", "restart=Never init=i/Never/In(3)->Restart app=a", "i:exited(3) a:waiting", 0, v1.PodPending},
		{"init failed, own Never", "restart=Always init=i/Never app=a", "i:exited(3) a:waiting", 0, v1.PodFailed},
		{"init stopped for a restart of all", "restart=Never init=i app=a", "i:exited(137;RestartingAllContainers) a:waiting", 0, v1.PodPending},
		{"init restarts in a pod that has run", "restart=Always init=i app=a", "i:running a:running", initialized, v1.PodPending},

		// Sidecars.
		{"sidecar unknown", "restart=Always sidecar=s app=a", "a:running", 0, v1.PodPending},
		{"sidecar waits", "restart=Always sidecar=s app=a", "s:waiting a:waiting", 0, v1.PodPending},
		{"sidecar runs, not started", "restart=Always sidecar=s app=a", "s:running a:running", 0, v1.PodPending},
		{"sidecar runs, not started, pod has run", "restart=Always sidecar=s app=a", "s:running,notstarted a:running", initialized, v1.PodRunning},
		{"sidecar waits, pod has run", "restart=Always sidecar=s app=a", "s:waiting a:running", initialized, v1.PodPending},
		{"sidecar has no state, pod has run", "restart=Always sidecar=s app=a", "s:none a:running", initialized, v1.PodPending},
		{"sidecar started", "restart=Always sidecar=s app=a", "s:running,started a:running", 0, v1.PodRunning},
		{"sidecar crashed, app runs", "restart=Always sidecar=s app=a", "s:exited(1) a:running", 0, v1.PodRunning},
		{"sidecar in a crash loop, app runs", "restart=Always sidecar=s app=a", "s:waiting,last(1) a:running", 0, v1.PodRunning},
		{"app done, sidecar still runs", "restart=Never sidecar=s app=a", "s:running,started a:exited(0)", 0, v1.PodRunning},
		{"app done, sidecar stopped", "restart=Never sidecar=s app=a", "s:exited(137) a:exited(0)", 0, v1.PodSucceeded},
		{"app failed, sidecar stopped with 0", "restart=Never sidecar=s app=a", "s:exited(0) a:exited(1)", 0, v1.PodFailed},
	} {
		got := podstatus.Phase(parsePod(t, row.pod), parseStatuses(t, row.statuses), row.flags&terminal != 0, row.flags&initialized != 0)
		check(t, row.story, string(got), string(row.want))
	}
}
