package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

func unhealthy(code string) guard.Verdict {
	return guard.Verdict{Health: guard.Unhealthy, Helps: true, Reasons: []guard.Reason{{Code: code}}}
}

func hopeless(code, do string) guard.Verdict {
	return guard.Verdict{Health: guard.Unhealthy, Reasons: []guard.Reason{{Code: code, Message: do}}, Do: do}
}

// restartsAt are restarts so many minutes before now.
func restartsAt(minutes ...int) (restarts []guard.Restart) {
	for _, m := range minutes {
		restarts = append(restarts, guard.Restart{At: begin.Add(-time.Duration(m) * time.Minute)})
	}
	return restarts
}

func TestDecide(t *testing.T) {
	allowed := guard.DefaultPolicy()
	allowed.Restart = true
	both := allowed
	both.RestartRuntime = true
	none := allowed
	none.PerHour = 0
	gone := guard.Read(begin, guard.Process{Sure: true})
	for _, c := range []struct {
		name     string
		verdict  guard.Verdict
		policy   guard.Policy
		history  guard.History
		restart  guard.Target
		withheld string // begins with
		do       string
		next     time.Duration // from now
	}{
		{name: "healthy: nothing", verdict: guard.Verdict{Health: guard.Healthy}, policy: allowed},
		{name: "unknown: nothing", verdict: guard.Verdict{Health: guard.Unknown}, policy: allowed},
		{name: "degraded: nothing, and it says so", verdict: guard.Verdict{Health: guard.Degraded}, policy: allowed, withheld: "it is degraded"},
		{name: "unhealthy: a restart", verdict: unhealthy(guard.ProcessGone), policy: allowed, restart: guard.TargetKubelet},
		{name: "by default nothing is restarted", verdict: unhealthy(guard.ProcessGone), policy: guard.DefaultPolicy(),
			withheld: "restarts are not allowed"},
		{name: "the API server is down", verdict: hopeless(guard.APIServerUnreachable, "bring back the API server"), policy: allowed,
			withheld: "a restart would not help", do: "bring back the API server"},
		{name: "the disk is full", verdict: hopeless(guard.DiskFull, "free space"), policy: allowed,
			withheld: "a restart would not help", do: "free space"},
		{name: "the certificate has expired", verdict: hopeless(guard.CertificateExpired, "renew its client certificate"), policy: allowed,
			withheld: "a restart would not help", do: "renew its client certificate"},
		{name: "the runtime is down: it is what must be restarted", verdict: hopeless(guard.RuntimeDown, "restart the container runtime"), policy: allowed,
			withheld: "a restart would not help", do: "restart the container runtime"},
		{name: "the runtime is down, and the guard may restart it", verdict: hopeless(guard.RuntimeDown, "restart the container runtime"), policy: both,
			restart: guard.TargetRuntime},
		{name: "the runtime hangs in lists, and the guard may restart it", verdict: hopeless(guard.RuntimeHangs, "restart the container runtime"), policy: both,
			restart: guard.TargetRuntime},
		{name: "the node shuts down", verdict: unhealthy(guard.ProcessGone), policy: allowed, history: guard.History{ShuttingDown: true},
			withheld: "the node is shutting down"},
		{name: "maintenance", verdict: unhealthy(guard.ProcessGone), policy: allowed, history: guard.History{Maintenance: begin.Add(time.Minute)},
			withheld: "maintenance until 2026-03-01T12:01:00Z"},
		{name: "maintenance is over", verdict: unhealthy(guard.ProcessGone), policy: allowed, history: guard.History{Maintenance: begin},
			restart: guard.TargetKubelet},
		{name: "the unit is masked", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: guard.Read(begin, guard.Process{Masked: true})}, withheld: "its unit is masked"},
		{name: "an operator has stopped the unit", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: guard.Read(begin, guard.Process{Sure: true, Asked: begin})}, withheld: "its unit was stopped by request at 2026-03-01T12:00:00Z"},
		{name: "the unit is being stopped", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: guard.Read(begin, guard.Process{Sure: true, Exists: true, Stopping: true})}, withheld: "its unit is being stopped by request"},
		{name: "the unit is disabled and does not run", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: guard.Read(begin, guard.Process{Sure: true, Disabled: true})}, withheld: "its unit is disabled"},
		{name: "the unit is disabled and was frozen while it ran", verdict: unhealthy(guard.ProcessStopped), policy: allowed,
			history: guard.History{Process: guard.Read(begin, guard.Process{Sure: true, Exists: true, Disabled: true})}, restart: guard.TargetKubelet},
		{name: "the package of the kubelet was removed, or D-Bus is down", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: guard.NotKnown[guard.Process](begin, "systemd has no unit kubelet.service")}, withheld: "whether it was stopped on purpose is not known: systemd has no unit"},
		{name: "maintenance by annotation", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history:  guard.History{Annotated: guard.Read(begin, guard.AnnotatedMaintenance(map[string]string{guard.MaintenanceAnnotation: "true"}))},
			withheld: "maintenance by the annotation statusd/maintenance of the Node"},
		{name: "maintenance by annotation until a time", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history:  guard.History{Annotated: guard.Read(begin, guard.AnnotatedMaintenance(map[string]string{guard.MaintenanceAnnotation: "2026-03-01T13:00:00Z"}))},
			withheld: "maintenance by the annotation statusd/maintenance of the Node until 2026-03-01T13:00:00Z"},
		{name: "maintenance by annotation is over", verdict: unhealthy(guard.ProcessGone), policy: allowed, restart: guard.TargetKubelet,
			history: guard.History{Annotated: guard.Read(begin, guard.AnnotatedMaintenance(map[string]string{guard.MaintenanceAnnotation: "2026-03-01T11:00:00Z"}))}},
		{name: "systemd restarts it by itself", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: guard.Read(begin, guard.Process{Restarting: true})}, withheld: "its supervisor is about to start it"},
		{name: "systemd waits with its start", verdict: unhealthy(guard.LeaseStale), policy: allowed,
			history: guard.History{Process: guard.Read(begin, guard.Process{Sure: true, Starting: true})}, withheld: "its supervisor is about to start it"},
		{name: "it has just started", verdict: unhealthy(guard.LeaseStale), policy: allowed,
			history:  guard.History{Process: guard.Read(begin, guard.Process{Exists: true, Started: begin.Add(-20 * time.Second)})},
			withheld: "it started at 2026-03-01T11:59:40Z and gets 1 min to recover", next: 40 * time.Second},
		{name: "the pause after one restart is over", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: gone, Restarts: restartsAt(1)}, restart: guard.TargetKubelet},
		{name: "the pause doubles", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: gone, Restarts: restartsAt(20, 10, 1)}, withheld: "the pause after 3 restarts within an hour is 2 min", next: time.Minute},
		{name: "restarts of the hour before do not count", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: gone, Restarts: restartsAt(100, 90, 80, 70, 65, 61)}, restart: guard.TargetKubelet},
		{name: "the budget is used up until the oldest is an hour old", verdict: unhealthy(guard.ProcessGone), policy: allowed,
			history: guard.History{Process: gone, Restarts: restartsAt(50, 45, 40, 30, 20)}, withheld: "5 restarts within the last hour", next: 10 * time.Minute},
		{name: "a budget of none", verdict: unhealthy(guard.ProcessGone), policy: none, withheld: "0 restarts within the last hour", next: time.Hour},
		{name: "restarts of the runtime are not those of the kubelet", verdict: unhealthy(guard.ProcessGone), policy: allowed, restart: guard.TargetKubelet,
			history: guard.History{Process: gone, Restarts: []guard.Restart{{At: begin.Add(-time.Second), What: guard.TargetRuntime}}}},
		{name: "the runtime was just restarted", verdict: hopeless(guard.RuntimeDown, "restart the container runtime"), policy: both,
			history:  guard.History{Restarts: []guard.Restart{{At: begin.Add(-20 * time.Second), What: guard.TargetRuntime}}},
			withheld: "it was restarted at 2026-03-01T11:59:40Z and gets 1 min to recover", do: "restart the container runtime", next: 40 * time.Second},
		{name: "the runtime was restarted a while ago", verdict: hopeless(guard.RuntimeDown, "restart the container runtime"), policy: both,
			history: guard.History{Restarts: []guard.Restart{{At: begin.Add(-time.Minute), What: guard.TargetRuntime}}}, restart: guard.TargetRuntime},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := guard.Decide(c.verdict, c.policy, c.history, begin)
			var next time.Duration
			if !d.Next.IsZero() {
				next = d.Next.Sub(begin)
			}
			if d.Restart != c.restart || !strings.HasPrefix(d.Withheld, c.withheld) || (d.Withheld == "") != (c.withheld == "") || d.Do != c.do || next != c.next {
				t.Errorf("got %+v\nwant a restart of %q, withheld %q, do %q, next in %v", d, c.restart, c.withheld, c.do, c.next)
			}
		})
	}
}
