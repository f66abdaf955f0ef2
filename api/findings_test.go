package api_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/observe"
)

// fakeAudit is what a test says an audit has found.
type fakeAudit struct {
	mu       sync.Mutex // guards what follows
	report   observe.Report
	pictures map[types.UID][]observe.Picture
}

func (a *fakeAudit) Report() observe.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.report
}

func (a *fakeAudit) Pictures(uid types.UID) []observe.Picture {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pictures[uid]
}

func (a *fakeAudit) set(change func(*observe.Report)) {
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
	alerts   []api.Alert
	silences []api.Silence
	broken   bool // the disk is full
}

func (a *fakeAlerts) Alerts() []api.Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.alerts)
}

func (a *fakeAlerts) Silences() []api.Silence {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.silences)
}

func (a *fakeAlerts) Silence(s api.Silence) (api.Silence, error) {
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
	i := slices.IndexFunc(a.silences, func(s api.Silence) bool { return s.ID == id })
	if i < 0 {
		return api.ErrNoSilence
	}
	a.silences = slices.Delete(a.silences, i, i+1)
	return nil
}

// observed gives a server an audit, a guard and rules that have found something.
func observed(o *api.Options) {
	o.Audit, o.Guard, o.Load, o.Alerts = sampleAudit(), sampleGuard(), sampleLoad{}, sampleAlerts()
}

func sampleAudit() *fakeAudit {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	code := int32(137)
	yes := true
	web := observe.Ref{UID: "uid-web", Namespace: "default", Name: "web"}
	return &fakeAudit{
		report: observe.Report{
			At: noon, Node: "n1",
			Sides: map[observe.Side]observe.Answer{
				observe.SideAPI:     {From: "https://192.0.2.10:6443", At: ago(time.Second), Since: ago(time.Hour)},
				observe.SideKubelet: {From: "https://127.0.0.1:10250/pods", At: ago(time.Minute), Err: "context deadline exceeded", Silent: ago(50 * time.Second)},
				observe.SideRuntime: {From: "unix:///run/containerd/containerd.sock", At: ago(time.Second), Since: ago(time.Hour)},
				observe.SideMachine: {From: "/var/lib/kubelet", At: ago(2 * time.Second), Since: ago(time.Hour)},
			},
			Propagation: map[observe.Side]observe.Propagation{observe.SideRuntime: {Samples: 12, Median: 300 * time.Millisecond, P99: time.Second, Bound: 2 * time.Second}},
			Differences: []observe.Difference{
				{
					Kind: observe.LeaseStale, Subject: "n1", Message: "The lease of the node was not renewed for 1m20s.", Since: ago(80 * time.Second), Seen: ago(40 * time.Second), Drift: true,
					Certainty: observe.Certain, Evidence: []observe.Evidence{{Side: observe.SideAPI, At: ago(time.Second), Text: "renewed at 11:58:40"}}, Do: "Look at the kubelet: statusd guard.",
				},
				{
					Kind: observe.ContainerWithoutPod, Pod: observe.Ref{UID: "uid-lost", Namespace: "default", Name: "lost"}, Container: "main", Message: "The runtime runs container main of a pod that does not exist.",
					Since: ago(10 * time.Minute), Seen: ago(9 * time.Minute), Drift: true, Certainty: observe.Likely, Evidence: []observe.Evidence{}, Do: "Remove the container: crictl rm -f 4f.", Repair: true,
				},
				{
					Kind: observe.RunningWithoutContainer, Pod: web, Container: "main", Message: "The API says that container main runs, and it has ended.", Since: ago(45 * time.Second), Seen: ago(44 * time.Second), Drift: true,
					Certainty: observe.Certain, Do: "Restart the kubelet, which does not answer.",
					Evidence: []observe.Evidence{
						{Side: observe.SideRuntime, At: ago(time.Second), From: "unix:///run/containerd/containerd.sock", Text: "main ended with exit code 137 at 11:59:15"},
						{Side: observe.SideAPI, At: ago(time.Second), Text: "main is running since 11:00:00"},
					},
				},
				{
					Kind: observe.UnreportedRestart, Pod: web, Container: "main", Message: "The runtime has restarted main once more than the API says.", Since: ago(time.Second), Seen: ago(time.Second),
					Certainty: observe.Possible, Evidence: []observe.Evidence{}, Do: "Wait.",
				},
			},
		},
		pictures: map[types.UID][]observe.Picture{"uid-web": {
			{Side: observe.SideRuntime, Known: true, Exists: true, At: ago(time.Second), Containers: []observe.PictureContainer{{Name: "main", ID: "4f", State: "terminated", ExitCode: &code, Since: ago(45 * time.Second), Differs: true}}},
			{Side: observe.SideKubelet, Err: "context deadline exceeded", Exists: true, At: ago(time.Minute), Phase: "Running", Ready: "True", Containers: []observe.PictureContainer{{Name: "main", ID: "4f", State: "running", Ready: &yes, Since: ago(time.Hour), Differs: true}}},
			{Side: observe.SideAPI, Known: true, Exists: true, At: ago(time.Second), Phase: "Running", Ready: "True", Containers: []observe.PictureContainer{{Name: "main", ID: "4f", State: "running", Ready: &yes, Since: ago(time.Hour), Differs: true}}},
			{Side: observe.SideMachine, Known: true, Exists: true, At: ago(2 * time.Second), Notes: []string{"control group with 0 processes"}},
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

func (sampleLoad) Load() guard.Load {
	load := guard.Load{
		At: noon, CPU: guard.CPULoad{Cores: 2, Busy: 0.25, Load1: 0.5}, Memory: guard.MemoryLoad{Total: 8 << 30, Available: 6 << 30},
		Disks: []guard.DiskLoad{{Path: "/var/lib/kubelet", Total: 100 << 30, Available: 5 << 30}}, PIDs: guard.Count{Used: 300, Max: 32768}, Files: guard.Count{Used: 1000, Max: 100000},
		Pods: []guard.PodLoad{{UID: "uid-web", CPU: 0.2, Memory: 64 << 20, PIDs: 3}},
	}
	load.Summarize()
	return load
}

func sampleAlerts() *fakeAlerts {
	fired, over := noon.Add(-30*time.Second), noon.Add(-5*time.Minute)
	alert := func(rule, severity string, state api.AlertState, change ...func(*api.Alert)) api.Alert {
		a := api.Alert{
			Fingerprint: "f-" + rule, Rule: rule, Severity: severity, Scope: "pod", State: state, Namespace: "default", Pod: "web", UID: "uid-web",
			Labels: map[string]string{"alertname": rule, "pod": "web"}, Annotations: map[string]string{"summary": "web is not as it should be"}, Since: noon.Add(-time.Minute),
		}
		if state != api.AlertPending {
			a.Firing = &fired
		}
		for _, c := range change {
			c(&a)
		}
		return a
	}
	return &fakeAlerts{
		alerts: []api.Alert{
			alert("Slow", "info", api.AlertResolved, func(a *api.Alert) { a.Resolved = &over }),
			alert("NotReady", "warning", api.AlertFiring, func(a *api.Alert) {
				a.Actions = []api.AlertAction{{Action: "restart-container", At: noon, Result: "dry-run", Message: "would restart main"}}
			}),
			alert("Drift", "critical", api.AlertFiring),
			alert("Restarts", "warning", api.AlertPending),
			alert("Probe", "warning", api.AlertFiring, func(a *api.Alert) { a.Silenced, a.Scope, a.Container = "s1", "container", "main" }),
			alert("KubeletDown", "critical", api.AlertFiring, func(a *api.Alert) { a.Scope, a.Namespace, a.Pod, a.UID = "kubelet", "", "", "" }),
		},
		silences: []api.Silence{{ID: "s1", Matchers: []api.Matcher{{Name: "alertname", Value: "Probe", IsEqual: true}}, Created: noon.Add(-time.Hour), Until: noon.Add(time.Hour), By: "jan", Comment: "known"}},
	}
}
