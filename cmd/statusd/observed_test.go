package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/load"
)

// scriptAudit is an audit of the node of the scripts.
type scriptAudit struct{ report audit.Report }

func (a scriptAudit) Report() audit.Report { return a.report }

func (a scriptAudit) Pictures(uid types.UID) []audit.Picture {
	if uid != "uid-web" {
		return nil
	}
	at := a.report.At
	code, yes := int32(137), true
	runs := []audit.PictureContainer{{Name: "main", ID: "4f", State: "running", Ready: &yes, Since: at.Add(-10 * time.Hour), Differs: true}}
	return []audit.Picture{
		{Side: audit.SideAPI, Known: true, Exists: true, At: at.Add(-10 * time.Hour), Phase: "Running", Ready: "True", Containers: runs},
		{Side: audit.SideKubelet, Err: "context deadline exceeded", Exists: true, At: at.Add(-9 * time.Hour), Phase: "Running", Ready: "True", Containers: runs},
		{Side: audit.SideMachine, Known: true, Exists: true, At: at.Add(-10 * time.Hour), Notes: []string{"control group with 0 processes", "\x1b[2Jevil"}},
		{Side: audit.SideRuntime, Known: true, Exists: true, At: at.Add(-10 * time.Hour), Containers: []audit.PictureContainer{{Name: "main", ID: "4f", State: "terminated", Reason: "Error", ExitCode: &code, Restarts: 1, Since: at.Add(-9 * time.Hour), Differs: true}}},
	}
}

// sides are the four sides of an audit: all answer, except for the named ones.
func sides(began time.Time, silent ...audit.Side) map[audit.Side]audit.Answer {
	found := map[audit.Side]audit.Answer{}
	for _, side := range []audit.Side{audit.SideAPI, audit.SideKubelet, audit.SideRuntime, audit.SideMachine} {
		found[side] = audit.Answer{From: string(side), At: began, Since: began.Add(-10 * time.Hour)}
		if slices.Contains(silent, side) {
			found[side] = audit.Answer{From: string(side), At: began.Add(-9 * time.Hour), Silent: began.Add(-9 * time.Hour), Err: "context deadline exceeded"}
		}
	}
	return found
}

// settling is a difference that may only be news on its way.
func settling(began time.Time) audit.Difference {
	return audit.Difference{
		Kind: audit.UnreportedRestart, Pod: audit.Ref{UID: "uid-loop", Namespace: "default", Name: "loop"}, Container: "main", Message: "The runtime has restarted main once more than the API says.",
		Since: began, Seen: began, Certainty: audit.Possible, Do: "Wait.",
	}
}

// driftReport has one pod that is not true, one that the node does not list, and the node itself.
func driftReport(began time.Time) audit.Report {
	ago := began.Add(-9 * time.Hour)
	return audit.Report{At: began, Node: "n1", Sides: sides(began, audit.SideKubelet), Differences: []audit.Difference{
		{
			Kind: audit.LeaseStale, Message: "The lease of the node is not renewed.", Since: ago, Seen: ago, Drift: true, Certainty: audit.Certain, Do: "Restart the kubelet, which does not answer.",
			Evidence: []audit.Evidence{{Side: audit.SideAPI, At: ago, Text: "the lease lasts 40 s"}},
		},
		settling(began),
		{
			Kind: audit.ContainerWithoutPod, Pod: audit.Ref{UID: "uid-lost", Namespace: "shop", Name: "lost"}, Container: "main", Message: "The runtime runs \x1b[2Jcontainer main of a pod that does not exist.",
			Since: ago, Seen: ago, Drift: true, Certainty: audit.Likely, Do: "Remove the container.", Holds: []string{"volume data is mounted"}, Writer: "kubectl",
		},
		{
			Kind: audit.RunningWithoutContainer, Pod: audit.Ref{UID: "uid-web", Namespace: "default", Name: "web"}, Container: "main", Message: "The API says that main runs, and it has ended.",
			Since: ago, Seen: ago, Drift: true, Certainty: audit.Certain, Do: "Restart the kubelet, which does not answer.",
			Evidence: []audit.Evidence{{Side: audit.SideRuntime, At: ago, Text: "main ended with exit code 137"}, {Side: audit.SideAPI, At: ago, Text: "main runs"}},
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
		Would:       []guard.Restart{{At: ago, By: "dry run", Reason: "ProcessGone"}},
		NextRestart: g.began.Add(10 * time.Hour), Withheld: "a restart does not free space",
		Maintenance: g.maintenance,
	}
}

// scriptLoad is a node whose disk is nearly full.
type scriptLoad struct{}

func (scriptLoad) Load() load.Load {
	load := load.Load{
		CPU: load.CPULoad{Cores: 2, Busy: 0.5}, Memory: load.MemoryLoad{Total: 8 << 30, Available: 6 << 30},
		Disks: []load.DiskLoad{{Path: "/var/lib/kubelet", Total: 100 << 30, Available: 5 << 30}},
	}
	load.Summarize()
	return load
}

// scriptAlerts keeps silences.
type scriptAlerts struct {
	began time.Time

	mu       sync.Mutex // guards silences and made
	silences []alert.Silence
	made     int
}

func (a *scriptAlerts) Alerts() []alert.Alert {
	ago := a.began.Add(-9 * time.Hour)
	raised := func(rule, severity string, state alert.State) alert.Alert {
		made := alert.Alert{
			Fingerprint: rule, Rule: rule, Severity: severity, Scope: "pod", State: state, Namespace: "default", Pod: "web", UID: "uid-web",
			Labels: map[string]string{"alertname": rule, "severity": severity}, Annotations: map[string]string{"summary": "web is \x1b[2Jnot as it should be"}, Since: ago,
		}
		if state != alert.Pending {
			made.Firing = &ago
		}
		return made
	}
	over := raised("Slow", "info", alert.Resolved)
	over.Resolved = &ago
	silenced := raised("Probe", "warning", alert.Firing)
	silenced.Silenced, silenced.Scope, silenced.Container = "s0", "container", "main"
	down := raised("KubeletDown", "critical", alert.Firing)
	down.Scope, down.Namespace, down.Pod, down.UID, down.Annotations = "kubelet", "", "", "", map[string]string{"description": "the kubelet does not answer", "action": "Read its log."}
	down.Actions = []alert.Action{{Action: "restart-kubelet", At: ago, Result: "refused", Message: "budget is used up"}}
	return []alert.Alert{over, raised("Restarts", "warning", alert.Pending), silenced, raised("NotReady", "warning", alert.Firing), down}
}

func (a *scriptAlerts) Silences() []alert.Silence {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.silences)
}

func (a *scriptAlerts) Silence(s alert.Silence) (alert.Silence, error) {
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
	i := slices.IndexFunc(a.silences, func(s alert.Silence) bool { return s.ID == id })
	if i < 0 {
		return alert.ErrNoSilence
	}
	a.silences = slices.Delete(a.silences, i, i+1)
	return nil
}
