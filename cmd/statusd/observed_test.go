package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/observe"
)

// scriptAudit is an audit of the node of the scripts.
type scriptAudit struct{ report observe.Report }

func (a scriptAudit) Report() observe.Report { return a.report }

func (a scriptAudit) Pictures(uid types.UID) []observe.Picture {
	if uid != "uid-web" {
		return nil
	}
	at := a.report.At
	code, yes := int32(137), true
	runs := []observe.PictureContainer{{Name: "main", ID: "4f", State: "running", Ready: &yes, Since: at.Add(-10 * time.Hour), Differs: true}}
	return []observe.Picture{
		{Side: observe.SideAPI, Known: true, Exists: true, At: at.Add(-10 * time.Hour), Phase: "Running", Ready: "True", Containers: runs},
		{Side: observe.SideKubelet, Err: "context deadline exceeded", Exists: true, At: at.Add(-9 * time.Hour), Phase: "Running", Ready: "True", Containers: runs},
		{Side: observe.SideMachine, Known: true, Exists: true, At: at.Add(-10 * time.Hour), Notes: []string{"control group with 0 processes", "\x1b[2Jevil"}},
		{Side: observe.SideRuntime, Known: true, Exists: true, At: at.Add(-10 * time.Hour), Containers: []observe.PictureContainer{{Name: "main", ID: "4f", State: "terminated", Reason: "Error", ExitCode: &code, Restarts: 1, Since: at.Add(-9 * time.Hour), Differs: true}}},
	}
}

// sides are four that answer, except for those that are named.
func sides(began time.Time, silent ...observe.Side) map[observe.Side]observe.Answer {
	found := map[observe.Side]observe.Answer{}
	for _, side := range []observe.Side{observe.SideAPI, observe.SideKubelet, observe.SideRuntime, observe.SideMachine} {
		found[side] = observe.Answer{From: string(side), At: began, Since: began.Add(-10 * time.Hour)}
		if slices.Contains(silent, side) {
			found[side] = observe.Answer{From: string(side), At: began.Add(-9 * time.Hour), Silent: began.Add(-9 * time.Hour), Err: "context deadline exceeded"}
		}
	}
	return found
}

// settling is a difference that may only be news on its way.
func settling(began time.Time) observe.Difference {
	return observe.Difference{
		Kind: observe.UnreportedRestart, Pod: observe.Ref{UID: "uid-loop", Namespace: "default", Name: "loop"}, Container: "main", Message: "The runtime has restarted main once more than the API says.",
		Since: began, Seen: began, Certainty: observe.Possible, Do: "Wait.",
	}
}

// driftReport has one pod that is not true, one that the node does not list, and the node itself.
func driftReport(began time.Time) observe.Report {
	ago := began.Add(-9 * time.Hour)
	return observe.Report{At: began, Node: "n1", Sides: sides(began, observe.SideKubelet), Differences: []observe.Difference{
		{
			Kind: observe.LeaseStale, Message: "The lease of the node is not renewed.", Since: ago, Seen: ago, Drift: true, Certainty: observe.Certain, Do: "Restart the kubelet, which does not answer.",
			Evidence: []observe.Evidence{{Side: observe.SideAPI, At: ago, Text: "the lease lasts 40 s"}},
		},
		settling(began),
		{
			Kind: observe.ContainerWithoutPod, Pod: observe.Ref{UID: "uid-lost", Namespace: "shop", Name: "lost"}, Container: "main", Message: "The runtime runs \x1b[2Jcontainer main of a pod that does not exist.",
			Since: ago, Seen: ago, Drift: true, Certainty: observe.Likely, Do: "Remove the container.", Holds: []string{"volume data is mounted"}, Writer: "kubectl",
		},
		{
			Kind: observe.RunningWithoutContainer, Pod: observe.Ref{UID: "uid-web", Namespace: "default", Name: "web"}, Container: "main", Message: "The API says that main runs, and it has ended.",
			Since: ago, Seen: ago, Drift: true, Certainty: observe.Certain, Do: "Restart the kubelet, which does not answer.",
			Evidence: []observe.Evidence{{Side: observe.SideRuntime, At: ago, Text: "main ended with exit code 137"}, {Side: observe.SideAPI, At: ago, Text: "main runs"}},
		},
	}}
}

// scriptGuard is a guard of a kubelet that is frozen.
type scriptGuard struct {
	began time.Time

	mu          sync.Mutex // guards maintenance
	maintenance time.Time
}

func (g *scriptGuard) Maintenance(until time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maintenance = until
	return nil
}

func (g *scriptGuard) Report() guard.Report {
	g.mu.Lock()
	defer g.mu.Unlock()
	ago := g.began.Add(-9 * time.Hour)
	return guard.Report{
		At: g.began, Unit: "kubelet.service", PID: 711, Started: g.began.Add(-10 * time.Hour),
		Verdict: guard.Verdict{
			Health: guard.Unhealthy, Since: ago, Do: "free space on /var/lib/kubelet",
			Reasons: []guard.Reason{{Code: "DiskFull", Message: "/var/lib/kubelet has 0 bytes left", Since: ago}},
		},
		Evidence:    []guard.Item{{Name: "healthz", At: ago, Text: "no answer \x1b[2Jwithin 1 s"}, {Name: "unit", At: ago, OK: true, Text: "active (running)"}, {Name: "disk", Unknown: true, Text: "not configured"}},
		Restarts:    []guard.Restart{{At: ago, By: "guard", Reason: "Frozen", Evidence: "/var/lib/statusd/evidence/1", EvidenceErr: "goroutines.txt: 403 Forbidden"}, {At: ago, By: "guard", Reason: "Frozen", Err: "unit is masked"}},
		NextRestart: g.began.Add(10 * time.Hour), Withheld: "a restart does not free space",
		Maintenance: g.maintenance,
	}
}

// scriptLoad is a node whose disk is nearly full.
type scriptLoad struct{}

func (scriptLoad) Load() guard.Load {
	load := guard.Load{
		CPU: guard.CPULoad{Cores: 2, Busy: 0.5}, Memory: guard.MemoryLoad{Total: 8 << 30, Available: 6 << 30},
		Disks: []guard.DiskLoad{{Path: "/var/lib/kubelet", Total: 100 << 30, Available: 5 << 30}},
	}
	load.Summarize()
	return load
}

// scriptAlerts keeps silences.
type scriptAlerts struct {
	began time.Time

	mu       sync.Mutex // guards silences and made
	silences []api.Silence
	made     int
}

func (a *scriptAlerts) Alerts() []api.Alert {
	ago := a.began.Add(-9 * time.Hour)
	alert := func(rule, severity string, state api.AlertState) api.Alert {
		made := api.Alert{
			Fingerprint: rule, Rule: rule, Severity: severity, Scope: "pod", State: state, Namespace: "default", Pod: "web", UID: "uid-web",
			Labels: map[string]string{"alertname": rule, "severity": severity}, Annotations: map[string]string{"summary": "web is \x1b[2Jnot as it should be"}, Since: ago,
		}
		if state != api.AlertPending {
			made.Firing = &ago
		}
		return made
	}
	over := alert("Slow", "info", api.AlertResolved)
	over.Resolved = &ago
	silenced := alert("Probe", "warning", api.AlertFiring)
	silenced.Silenced, silenced.Scope, silenced.Container = "s0", "container", "main"
	down := alert("KubeletDown", "critical", api.AlertFiring)
	down.Scope, down.Namespace, down.Pod, down.UID, down.Annotations = "kubelet", "", "", "", map[string]string{"description": "the kubelet does not answer", "action": "Read its log."}
	down.Actions = []api.AlertAction{{Action: "restart-kubelet", At: ago, Result: "refused", Message: "budget is used up"}}
	return []api.Alert{over, alert("Restarts", "warning", api.AlertPending), silenced, alert("NotReady", "warning", api.AlertFiring), down}
}

func (a *scriptAlerts) Silences() []api.Silence {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.silences)
}

func (a *scriptAlerts) Silence(s api.Silence) (api.Silence, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made++
	s.ID, s.Created = fmt.Sprintf("s%d", a.made), a.began
	a.silences = append(a.silences, s)
	return s, nil
}

func (a *scriptAlerts) Expire(id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.silences, func(s api.Silence) bool { return s.ID == id })
	if i < 0 {
		return api.ErrNoSilence
	}
	a.silences = slices.Delete(a.silences, i, i+1)
	return nil
}
