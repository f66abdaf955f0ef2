package queryapi_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/load"
	"github.com/statusd/statusd/internal/queryapi"
)

// fakeAudit is what a test says an audit has found.
type fakeAudit struct {
	mu       sync.Mutex // guards what follows
	report   audit.Report
	pictures map[types.UID][]audit.Picture
}

func (a *fakeAudit) Report() audit.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.report
}

func (a *fakeAudit) Pictures(uid types.UID) []audit.Picture {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pictures[uid]
}

func (a *fakeAudit) set(change func(*audit.Report)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report.Differences = slices.Clone(a.report.Differences)
	change(&a.report)
}

type fakeGuard struct{ report guard.Report }

func (g *fakeGuard) Report() guard.Report { return g.report }

// fakeAlerts stores silences, and gives them IDs in order.
type fakeAlerts struct {
	mu       sync.Mutex // guards what follows
	alerts   []alert.Alert
	silences []alert.Silence
	broken   bool // the disk is full
}

func (a *fakeAlerts) Alerts() []alert.Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.alerts)
}

func (a *fakeAlerts) Silences() []alert.Silence {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.silences)
}

func (a *fakeAlerts) Silence(s alert.Silence) (alert.Silence, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken {
		return s, errors.New("write state: no space left on device")
	}
	s.ID, s.Created = fmt.Sprintf("s%d", len(a.silences)+1), noon
	a.silences = append(a.silences, s)
	return s, nil
}

func (a *fakeAlerts) Expire(id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.silences, func(s alert.Silence) bool { return s.ID == id })
	if i < 0 {
		return alert.ErrNoSilence
	}
	a.silences = slices.Delete(a.silences, i, i+1)
	return nil
}

// observed gives a server an audit, a guard and rules that have found something.
func observed(o *queryapi.Options) {
	o.Audit, o.Guard, o.Load, o.Alerts = sampleAudit(), sampleGuard(), sampleLoad{}, sampleAlerts()
}

func sampleAudit() *fakeAudit {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	code := int32(137)
	yes := true
	web := audit.Ref{UID: "uid-web", Namespace: "default", Name: "web"}
	return &fakeAudit{
		report: audit.Report{
			At: noon, Node: "n1",
			Sides: map[audit.Side]audit.Answer{
				audit.SideAPI:     {From: "https://192.0.2.10:6443", At: ago(time.Second), Since: ago(time.Hour)},
				audit.SideKubelet: {From: "https://127.0.0.1:10250/pods", At: ago(time.Minute), Err: "context deadline exceeded", Silent: ago(50 * time.Second)},
				audit.SideRuntime: {From: "unix:///run/containerd/containerd.sock", At: ago(time.Second), Since: ago(time.Hour)},
				audit.SideMachine: {From: "/var/lib/kubelet", At: ago(2 * time.Second), Since: ago(time.Hour)},
			},
			Propagation: map[audit.Side]audit.Propagation{audit.SideRuntime: {Samples: 12, Median: 300 * time.Millisecond, P99: time.Second, Bound: 2 * time.Second}},
			Differences: []audit.Difference{
				{
					Kind: audit.LeaseStale, Subject: "n1", Message: "The lease of the node was not renewed for 1m20s.", Since: ago(80 * time.Second), Seen: ago(40 * time.Second), Drift: true,
					Certainty: audit.Certain, Evidence: []audit.Evidence{{Side: audit.SideAPI, At: ago(time.Second), Text: "renewed at 11:58:40"}}, Do: "Look at the kubelet: statusd guard.",
				},
				{
					Kind: audit.ContainerWithoutPod, Pod: audit.Ref{UID: "uid-lost", Namespace: "default", Name: "lost"}, Container: "main", Message: "The runtime runs container main of a pod that does not exist.",
					Since: ago(10 * time.Minute), Seen: ago(9 * time.Minute), Drift: true, Certainty: audit.Likely, Evidence: []audit.Evidence{}, Do: "Remove the container: crictl rm -f 4f.", Repair: true,
				},
				{
					Kind: audit.RunningWithoutContainer, Pod: web, Container: "main", Message: "The API says that container main runs, and it has ended.", Since: ago(45 * time.Second), Seen: ago(44 * time.Second), Drift: true,
					Certainty: audit.Certain, Do: "Restart the kubelet, which does not answer.",
					Evidence: []audit.Evidence{
						{Side: audit.SideRuntime, At: ago(time.Second), From: "unix:///run/containerd/containerd.sock", Text: "main ended with exit code 137 at 11:59:15"},
						{Side: audit.SideAPI, At: ago(time.Second), Text: "main is running since 11:00:00"},
					},
				},
				{
					Kind: audit.UnreportedRestart, Pod: web, Container: "main", Message: "The runtime has restarted main once more than the API says.", Since: ago(time.Second), Seen: ago(time.Second),
					Certainty: audit.Possible, Evidence: []audit.Evidence{}, Do: "Wait.",
				},
			},
		},
		pictures: map[types.UID][]audit.Picture{"uid-web": {
			{Side: audit.SideRuntime, Known: true, Exists: true, At: ago(time.Second), Containers: []audit.PictureContainer{{Name: "main", ID: "4f", State: "terminated", ExitCode: &code, Since: ago(45 * time.Second), Differs: true}}},
			{Side: audit.SideKubelet, Err: "context deadline exceeded", Exists: true, At: ago(time.Minute), Phase: "Running", Ready: "True", Containers: []audit.PictureContainer{{Name: "main", ID: "4f", State: "running", Ready: &yes, Since: ago(time.Hour), Differs: true}}},
			{Side: audit.SideAPI, Known: true, Exists: true, At: ago(time.Second), Phase: "Running", Ready: "True", Containers: []audit.PictureContainer{{Name: "main", ID: "4f", State: "running", Ready: &yes, Since: ago(time.Hour), Differs: true}}},
			{Side: audit.SideMachine, Known: true, Exists: true, At: ago(2 * time.Second), Notes: []string{"control group with 0 processes"}},
		}},
	}
}

func sampleGuard() *fakeGuard {
	return &fakeGuard{guard.Report{
		At: noon, Unit: "kubelet.service", PID: 711, Started: noon.Add(-time.Hour), Withheld: "maintenance until 13:00", Maintenance: noon.Add(time.Hour), NextRestart: noon.Add(time.Hour),
		Verdict: guard.Verdict{
			Health: guard.Unhealthy, Since: noon.Add(-40 * time.Second), Helps: true, Do: "Restart the kubelet.",
			Reasons: []guard.Reason{{Code: "Frozen", Message: "the process is stopped by a signal", Since: noon.Add(-50 * time.Second)}},
		},
		Evidence: []guard.Item{{Name: "healthz", At: noon.Add(-2 * time.Second), Text: "no answer within 1 s"}, {Name: "unit", At: noon, OK: true, Text: "active (running)"}},
		Restarts: []guard.Restart{{At: noon.Add(-30 * time.Minute), By: "guard", Reason: "Frozen", Evidence: "/var/lib/statusd/evidence/1"}},
	}}
}

// sampleLoad is a node whose disk is nearly full.
type sampleLoad struct{}

func (sampleLoad) Load() load.Load {
	load := load.Load{
		At: noon, CPU: load.CPULoad{Cores: 2, Busy: 0.25, Load1: 0.5}, Memory: load.MemoryLoad{Total: 8 << 30, Available: 6 << 30},
		Disks: []load.DiskLoad{{Path: "/var/lib/kubelet", Total: 100 << 30, Available: 5 << 30}}, PIDs: load.Count{Used: 300, Max: 32768}, Files: load.Count{Used: 1000, Max: 100000},
		Pods: []load.PodLoad{{UID: "uid-web", CPU: 0.2, Memory: 64 << 20, PIDs: 3}},
	}
	load.Summarize()
	return load
}

func sampleAlerts() *fakeAlerts {
	fired, over := noon.Add(-30*time.Second), noon.Add(-5*time.Minute)
	raised := func(rule, severity string, state alert.State, change ...func(*alert.Alert)) alert.Alert {
		a := alert.Alert{
			Fingerprint: "f-" + rule, Rule: rule, Severity: severity, Scope: "pod", State: state, Namespace: "default", Pod: "web", UID: "uid-web",
			Labels: map[string]string{"alertname": rule, "pod": "web"}, Annotations: map[string]string{"summary": "web is not as it should be"}, Since: noon.Add(-time.Minute),
		}
		if state != alert.Pending {
			a.Firing = &fired
		}
		for _, c := range change {
			c(&a)
		}
		return a
	}
	return &fakeAlerts{
		alerts: []alert.Alert{
			raised("Slow", "info", alert.Resolved, func(a *alert.Alert) { a.Resolved = &over }),
			raised("NotReady", "warning", alert.Firing, func(a *alert.Alert) {
				a.Actions = []alert.Action{{Action: "restart-container", At: noon, Result: "dry-run", Message: "would restart main"}}
			}),
			raised("Drift", "critical", alert.Firing),
			raised("Restarts", "warning", alert.Pending),
			raised("Probe", "warning", alert.Firing, func(a *alert.Alert) { a.Silenced, a.Scope, a.Container = "s1", "container", "main" }),
			raised("KubeletDown", "critical", alert.Firing, func(a *alert.Alert) { a.Scope, a.Namespace, a.Pod, a.UID = "kubelet", "", "", "" }),
		},
		silences: []alert.Silence{{ID: "s1", Matchers: []alert.Matcher{{Name: "alertname", Value: "Probe", IsEqual: true}}, Created: noon.Add(-time.Hour), Until: noon.Add(time.Hour), By: "jan", Comment: "known"}},
	}
}
