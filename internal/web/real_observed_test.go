//go:build real

package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/load"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/view"
)

// observedNode is a node beside a frozen kubelet, with a guard and rules.
func observedNode() view.NodeDetail {
	n := aNode()
	n.Sides = map[audit.Side]audit.Answer{
		audit.SideAPI:     {From: "https://10.0.0.1:6443", At: *ago(time.Second), Since: *ago(3 * time.Hour)},
		audit.SideKubelet: {From: "https://127.0.0.1:10250/pods", At: *ago(time.Minute), Err: "context deadline exceeded", Silent: *ago(8*time.Hour + 30*time.Minute)},
		audit.SideRuntime: {From: "unix:///run/containerd/containerd.sock", At: *ago(time.Second), Since: *ago(3 * time.Hour)},
		audit.SideMachine: {From: "/var/lib/kubelet", At: *ago(2 * time.Second), Since: *ago(3 * time.Hour)},
	}
	n.Drift = 3
	n.Differences = []audit.Difference{
		{Kind: audit.UnreportedRestart, Message: "A restart may not be reported yet.", Since: *ago(0), Certainty: audit.Possible, Do: "Wait."},
		{
			Kind: audit.LeaseStale, Message: "The lease of the node is not renewed.", Since: *ago(50 * time.Second), Drift: true, Certainty: audit.Certain, Do: "Look at the kubelet.",
			Evidence: []audit.Evidence{{Side: audit.SideAPI, At: *ago(time.Second), Text: "the lease lasts 40 s"}},
		},
		{
			Kind: audit.ContainerWithoutPod, Pod: audit.Ref{UID: "uid-lost", Namespace: "shop", Name: "lost"}, Container: "main", Message: "The runtime runs a container of a pod that does not exist.",
			Since: *ago(time.Hour), Drift: true, Certainty: audit.Likely, Do: "Remove the container.", Holds: []string{"volume data is mounted"}, Writer: "kubectl",
		},
	}
	n.Kubelet = &guard.Report{
		At: *ago(0), Unit: "kubelet.service", PID: 711, Started: *ago(3 * time.Hour), Withheld: "maintenance", Maintenance: time.Now().Add(time.Hour).UTC(), NextRestart: time.Now().Add(time.Hour).UTC(),
		Verdict:  guard.Verdict{Health: guard.Unhealthy, Since: *ago(40 * time.Second), Helps: true, Do: "End the maintenance.", Reasons: []guard.Reason{{Code: "Frozen", Message: "the process is stopped by a signal", Since: *ago(50 * time.Second)}}},
		Evidence: []guard.Item{{Name: "healthz", At: *ago(2 * time.Second), Text: "no answer within 1 s"}, {Name: "unit", At: *ago(0), OK: true, Text: "active (running)"}},
		Restarts: []guard.Restart{{At: *ago(30 * time.Minute), By: "guard", Reason: "Frozen", Evidence: "/var/lib/statusd/evidence/1"}, {At: *ago(20 * time.Minute), By: "guard", Reason: "Frozen", Err: "unit is masked"}},
	}
	load := load.Load{
		At: *ago(0), CPU: load.CPULoad{Cores: 8, Busy: 0.25, Load1: 2.5}, Memory: load.MemoryLoad{Total: 32 << 30, Available: 24 << 30},
		Disks: []load.DiskLoad{{Path: "/var/lib/kubelet", Total: 100 << 30, Available: 5 << 30, Inodes: 1000, InodesFree: 500}}, PIDs: load.Count{Used: 300, Max: 32768}, Files: load.Count{Used: 1000, Max: 100000},
		Pressure: map[string]load.Pressure{"io": {Some10: 12.5}}, Network: []load.NetworkLoad{{Name: "eth0", Errors: 7}}, Problems: []string{"the control groups of pods cannot be read"},
	}
	load.Summarize()
	n.Load = &load
	n.Logs = &logs.Report{
		Sources:    []logs.Source{{Name: "journal of kubelet", Err: "no such unit"}, {Name: "kernel", Lines: 900, Lost: 4}},
		Conditions: []logs.Condition{{Type: "ReadonlyFilesystem", True: true, Reason: "FilesystemIsReadOnly", Since: *ago(time.Hour), Text: "Remounting filesystem read-only"}, {Type: "KernelDeadlock", Reason: "KernelHasNoDeadlock"}},
		Problems:   []logs.Problem{{Origin: "kernel", Reason: "OOMKilling", Severity: logs.Warning, At: *ago(time.Minute), Count: 3, Text: "Killed process 17 (java)", Victim: &logs.Victim{Process: "java", PID: "17", UID: "uid-of-shop-web-0"}}},
	}
	n.Firing, n.Alerts = 2, []alert.Alert{
		firing("KubeletDown", "critical", func(a *alert.Alert) { a.Scope, a.Namespace, a.Pod, a.UID = "kubelet", "", "", "" }),
		firing("PodNotReady", "warning"),
		firing("ProbeSlow", "info", func(a *alert.Alert) { a.Silenced, a.Scope, a.Container = "s1", "container", "server" }),
	}
	return n
}

func firing(rule, severity string, change ...func(*alert.Alert)) alert.Alert {
	a := alert.Alert{
		Fingerprint: rule, Rule: rule, Severity: severity, Scope: "pod", State: alert.Firing, Namespace: "shop", Pod: "web-0", UID: "uid-of-shop-web-0", Since: *ago(2 * time.Minute), Firing: ago(time.Minute),
		Labels: map[string]string{"alertname": rule}, Annotations: map[string]string{"summary": "web-0 is not as it should be", "description": "Look at its log."},
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

// untrue is a pod of which the API says that it runs, while its container has ended.
func untrue(pod view.PodDetail) view.PodDetail {
	code, yes := int32(137), true
	since := *ago(9*time.Hour + 30*time.Minute) // whose age is the same for the time of a test
	runs := []audit.PictureContainer{{Name: "server", ID: "4f", State: "running", Ready: &yes, Since: *ago(3 * time.Hour), Differs: true}}
	pod.Drift, pod.Alerts, pod.Delivery = 1, 1, view.Freshness{} // the kubelet reports, not statusd
	pod.Pictures = []audit.Picture{
		{Side: audit.SideAPI, Known: true, Exists: true, At: *ago(time.Second), From: "https://10.0.0.1:6443", Phase: "Running", Ready: "True", Containers: runs},
		{Side: audit.SideKubelet, Err: "context deadline exceeded", Exists: true, At: *ago(time.Minute), Phase: "Running", Ready: "True", Containers: runs},
		{Side: audit.SideMachine, Known: true, Exists: true, At: *ago(2 * time.Second), Notes: []string{"control group with 0 processes", "volume data is mounted"}},
		{Side: audit.SideRuntime, Known: true, Exists: true, At: *ago(time.Second), Containers: []audit.PictureContainer{{Name: "server", ID: "4f", State: "terminated", Reason: "Error", ExitCode: &code, Since: since, Differs: true}}},
	}
	pod.Differences = []audit.Difference{
		{Kind: audit.UnreportedRestart, Pod: audit.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, Message: "A restart may not be reported yet.", Since: *ago(0), Certainty: audit.Possible, Do: "Wait."},
		{
			Kind: audit.RunningWithoutContainer, Pod: audit.Ref{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, Container: "server", Message: "The API says that container server runs, and it has ended.",
			Since: since, Drift: true, Certainty: audit.Certain, Do: "Restart the kubelet, which does not answer.",
			Evidence: []audit.Evidence{{Side: audit.SideRuntime, At: *ago(time.Second), From: "unix:///run/containerd/containerd.sock", Text: "server ended with exit code 137"}, {Side: audit.SideAPI, At: *ago(time.Second), Text: "server runs"}},
		},
	}
	pod.Load = &load.PodLoad{UID: pod.UID, CPU: 0.25, Memory: 64 << 20, PIDs: 3, Throttled: 0.8, OOMKills: 2}
	pod = withRecord(pod, view.Record{Kind: "Drift", Subject: string(audit.RunningWithoutContainer), Container: "server", From: "difference", To: "drift", Message: "server has ended"})
	pod.Explanation.NotTrue = []explain.Cause{{Code: "RunningWithoutContainer", Since: &since, Text: "the API says that container server runs, and it has ended"}}
	pod.Why = fmt.Sprintf("What the API says of pod %s is not true since %s: the API says that container server runs, and it has ended. Reported: %s", key(pod), since.Format(time.TimeOnly), pod.Why)
	pod.AlertDetails = []alert.Alert{firing("PodNotReady", "warning"), firing("Restarts", "warning", func(a *alert.Alert) { a.State, a.Firing = alert.Pending, nil })}
	return pod
}

// startObserved is a fake with a pod that is not true, beside those of the crowd.
func startObserved(t *testing.T) *fake {
	t.Helper()
	f := startFake(t, append(crowd(), untrue(ready("shop", "web-0")))...)
	f.setNode(observedNode())
	return f
}

// A row says by a sign, a number and words that its pod is not as the API reports it.
func TestTheTableShowsDriftAndAlerts(t *testing.T) {
	f := startObserved(t)
	page := openTab(t, f.page(""))
	page.live()
	page.contains(`[data-key="shop/web-0"] .drift:not([hidden])`, "≠ 1")
	page.contains(`[data-key="shop/web-0"] .alerts:not([hidden])`, "! 1")
	if got := eval[string](page, `document.querySelector('[data-key="shop/web-0"] .drift').getAttribute('aria-label')`); got != "1 difference: what the API reports is not true" {
		t.Errorf("the badge is read as %q", got)
	}
	if got := eval[int](page, `document.querySelectorAll('.found:not([hidden])').length`); got != 2 {
		t.Errorf("%d badges are shown, want those of one pod", got)
	}
	page.contains(`[data-key="shop/web-0"] .why`, "Not true since ")
	page.contains("#node-strip", "▲ Kubelet does not answer")
	page.contains("#node-strip", "▲ 3 not true")
	page.contains("#node-strip", "▲ kubelet unhealthy")
	page.contains("#node-strip", "▲ 2 alerts")
	page.contains("#node-strip", "the kubelet reports to the API server")
	if text := eval[string](page, `document.querySelector('#node-strip').textContent`); strings.Contains(text, "up to date") {
		t.Errorf("the strip says %q of a node with drift", text)
	}
	page.until(`document.title.includes(', 1 not true')`)
	page.screenshot("observed-table")
	page.do(search("drift"))
	if got := page.rows(); got != "web-0" {
		t.Errorf("a search for drift finds %q", got)
	}

	// It clears as it came: by the watch.
	f.put(ready("shop", "web-0"))
	page.until(`document.querySelectorAll('.found:not([hidden])').length === 0`)
	f.setNode(aNode())
	page.until(`!document.querySelector('#node-strip [aria-label=Findings]')`)
}

// The page of a pod shows what each side says, what differs, and what to do.
func TestThePageOfAPodShowsTheSides(t *testing.T) {
	f := startObserved(t)
	page := openTab(t, f.page("#/pods/shop/web-0"))
	page.live()
	page.contains("[aria-label=Sides] th:nth-child(2)", "Runtime")
	page.contains("#pod-drift:not([hidden])", "≠ Not true")
	page.contains("[aria-label=Why] .explanation[data-tone=bad] .untrue", ": the API says that container server runs, and it has ended.")
	page.contains("[aria-label=Why] .sentence:last-of-type", "Reported: Ready since ")
	sides := eval[string](page, `[...document.querySelectorAll('[aria-label=Sides] th')].map((th) => th.textContent).join(' ')`)
	if want := "What Runtime Kubelet API server Machine"; sides != want {
		t.Errorf("the columns are %q, want %q", sides, want)
	}
	page.contains("[aria-label=Sides]", "no: context deadline exceeded")
	page.contains("[aria-label=Sides]", "control group with 0 processes")
	marked := eval[[]string](page, `[...document.querySelectorAll('[aria-label=Sides] .differs')].map((d) => d.textContent.replace(/ for .*/, ''))`)
	if want := "≠ contradicts another side: terminated Error (exit code 137), ≠ contradicts another side: running, ready, ≠ contradicts another side: running, ready"; strings.Join(marked, ", ") != want {
		t.Errorf("marked is %q, want %q", strings.Join(marked, ", "), want)
	}
	page.contains(`[data-kind=Drift][data-lane="RunningWithoutContainer server"] .segment`, "not true")
	first := `[aria-label=Differences] li:first-child`
	for _, text := range []string{
		"≠ Not true", "The API says that container server runs, and it has ended.", "RunningWithoutContainer", "certain", "9 h 30 min ago", "Runtime", "server ended with exit code 137", "To doRestart the kubelet, which does not answer.",
	} {
		page.contains(first, text)
	}
	page.contains("[aria-label=Differences] li:last-child", "◌ Settling")
	page.contains("[aria-label=Alerts]", "PodNotReady")
	page.contains("[aria-label=Alerts]", "pending")
	for _, text := range []string{"0.250 cores", "64 MiB", "◐ 80 % of the periods", "▲ 2"} {
		page.contains("#pod-sections [aria-label=Load]", text)
	}
	order := eval[string](page, `[...document.querySelectorAll('#pod-sections > section')].map((s) => s.getAttribute('aria-label')).join(' ')`)
	if want := "Why Differences Sides Timeline Containers Alerts Probes Load History YAML"; order != want {
		t.Errorf("the sections are %s, want %s", order, want)
	}
	page.size(1280, 1100)
	page.screenshot("observed-pod")

	// Without differences the sides stay; without an audit none of it does. What comes later stands at its place.
	calm := untrue(ready("shop", "web-0"))
	calm.Differences, calm.AlertDetails = nil, nil
	f.put(calm)
	page.contains("[aria-label=Differences]", "None is known.")
	page.until(`!document.querySelector('#pod-sections [aria-label=Alerts]')`)
	f.put(ready("shop", "web-0"))
	page.until(`document.querySelector('#pod-drift').hidden && !document.querySelector('[aria-label=Sides]') && !document.querySelector('[aria-label=Differences]')`)
	f.put(untrue(ready("shop", "web-0")))
	page.until(`document.querySelector('#pod-sections > section:nth-child(3)')?.getAttribute('aria-label') === 'Sides'`)
}

// The page of the node shows who answers, the verdict on the kubelet, the node's differences, and all alerts.
func TestThePageOfTheNodeShowsWhatWasFound(t *testing.T) {
	f := startObserved(t)
	page := openTab(t, f.page("#/node"))
	page.live()
	for selector, texts := range map[string][]string{
		"[aria-label=Sides]":       {"context deadline exceeded", "https://127.0.0.1:10250/pods", "8 h 30 min ago"},
		"[aria-label=Differences]": {"The lease of the node is not renewed.", "shop/lost", "volume data is mounted", "kubectl", "Remove the container.", "◌ Settling"},
		"[aria-label=Kubelet]":     {"▲ unhealthy", "Frozen", "the process is stopped by a signal", "no answer within 1 s", "unit is masked", "/var/lib/statusd/evidence/1", "maintenance", "not before", "End the maintenance."},
		"[aria-label=Logs]":        {"◐ journal of kubelet is not read: no such unit", "kernel: 4 lines were gone", "▲ ReadonlyFilesystem FilesystemIsReadOnly", "◐ OOMKilling", "java, pid 17, pod uid-of-shop-web-0", "Killed process 17 (java)"},
		"[aria-label=Load]":        {"▲ Load 95 %, by disk /var/lib/kubelet", "load average 2.50, 0.00, 0.00 on 8 cores", "5 GiB of 100 GiB left", "12.5 %", "eth0", "◐ the control groups of pods cannot be read"},
		"[aria-label=Alerts]":      {"KubeletDown", "critical", "firing, silenced", "Look at its log.", "shop/web-0 server"},
	} {
		for _, text := range texts {
			page.contains("#node-sections "+selector, text)
		}
	}
	if got := eval[string](page, `[...document.querySelectorAll('#node-sections > section')].map((s) => s.getAttribute('aria-label')).join(' ')`); got != "Problems Sides Differences Kubelet Alerts Load Logs Conditions Resources Delivery Node History" {
		t.Errorf("the sections are %s", got)
	}
	page.size(1280, 1200)
	page.screenshot("observed-node")
	page.do(`document.querySelector('#node-sections > [aria-label=Alerts] a').click()`)
	page.contains("#pod-view:not([hidden]) #pod-title", "shop/web-0")
	page.press(escape)

	// Live: it is thawed, and nothing is left.
	calm := observedNode()
	calm.Drift, calm.Differences, calm.Firing, calm.Alerts = 0, nil, 0, []alert.Alert{}
	calm.Sides[audit.SideKubelet] = calm.Sides[audit.SideRuntime]
	calm.Kubelet = &guard.Report{At: *ago(0), Verdict: guard.Verdict{Health: guard.Healthy, Since: *ago(0)}}
	f.setNode(calm)
	page.goTo("#/node")
	// The page of the pod that was seen before is hidden, and has sections of these names.
	page.contains("#node-sections > [aria-label=Kubelet]", "● healthy")
	page.contains("#node-sections > [aria-label=Differences]", "None is known.")
	page.contains("#node-sections > [aria-label=Alerts]", "No alert fires.")
	f.setNode(aNode())
	page.until(`!['Sides', 'Differences', 'Kubelet', 'Alerts', 'Load', 'Logs'].some((s) => document.querySelector('#node-sections > [aria-label=' + s + ']'))`)
}

// More alerts fire than are sent: the page says how many.
func TestThePageSaysHowManyAlertsItDoesNotShow(t *testing.T) {
	f := startFake(t, ready("shop", "web-0"))
	n := observedNode()
	n.Firing = 250
	f.setNode(n)
	page := openTab(t, f.page("#/node"))
	page.live()
	page.contains("[aria-label=Alerts]", "And 248 more: statusd alerts lists them.")
}

// A node that is not observed shows nothing of it.
func TestWithoutAnAuditNothingOfItIsShown(t *testing.T) {
	f := startFake(t, crowd()...)
	page := openTab(t, f.page(""))
	page.live()
	page.contains("#node-strip", "Ready True")
	for _, hash := range []string{"#/", "#/node", "#/pods/shop/web-0"} {
		page.goTo(hash)
		page.until(`document.querySelector('section .body')`)
		if got := eval[int](page, `document.querySelectorAll('[aria-label=Sides], [aria-label=Differences], [aria-label=Kubelet], [aria-label=Alerts], [aria-label=Load], [aria-label=Logs], [aria-label=Findings], .found:not([hidden])').length`); got != 0 {
			t.Errorf("%s shows %d parts of an audit", hash, got)
		}
	}
}

// What sides, evidence and alerts say is text.
func TestHostileFindingsAreText(t *testing.T) {
	const evil = `<img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>"'>&lt;`
	pod := untrue(ready("shop", "web-0"))
	for i := range pod.Pictures {
		p := &pod.Pictures[i]
		p.Err, p.From, p.Phase, p.Ready, p.Notes, p.Known = evil, evil, evil, evil, []string{evil}, false
		p.Containers = []audit.PictureContainer{{Name: evil, State: evil, Reason: evil, Differs: true}}
	}
	d := &pod.Differences[1]
	d.Kind, d.Message, d.Do, d.Writer, d.Holds, d.Container, d.Subject, d.Certainty = evil, evil, evil, evil, []string{evil}, evil, evil, evil
	d.Evidence = []audit.Evidence{{Side: evil, From: evil, Text: evil}}
	raised := firing(evil, evil, func(a *alert.Alert) {
		a.Container, a.State, a.Scope, a.Annotations = evil, evil, evil, map[string]string{"summary": evil, "description": evil + "2", "runbook_url": "javascript:document.title='pwned'"}
		a.Actions = []alert.Action{{Action: evil, Result: evil, Message: evil}}
	})
	pod.AlertDetails = []alert.Alert{raised}
	n := observedNode()
	n.Sides[evil] = audit.Answer{From: evil, Err: evil}
	n.Differences, n.Alerts = []audit.Difference{*d}, []alert.Alert{raised}
	n.Differences[0].Pod = audit.Ref{UID: evil, Namespace: evil, Name: evil}
	n.Logs.Sources[0].Name, n.Logs.Conditions[0].Text, n.Logs.Problems[0].Text, n.Logs.Problems[0].Victim.Process = evil, evil, evil, evil
	n.Load.Parts[0].Text, n.Load.Problems = evil, []string{evil}
	n.Kubelet.Health, n.Kubelet.Do, n.Kubelet.Unit, n.Kubelet.Withheld = evil, evil, evil, evil
	n.Kubelet.Reasons[0].Code, n.Kubelet.Reasons[0].Message = evil, evil
	n.Kubelet.Evidence[0].Name, n.Kubelet.Evidence[0].Text = evil, evil
	n.Kubelet.Restarts[0].Reason, n.Kubelet.Restarts[0].Err = evil, evil
	f := startFake(t, pod)
	f.setNode(n)
	page := openTab(t, f.page(""))
	page.live()
	page.contains("#node-strip", evil)
	page.goTo("#/node")
	for _, section := range []string{"Sides", "Differences", "Kubelet", "Alerts", "Load", "Logs"} {
		page.contains("#node-sections [aria-label="+section+"]", evil)
	}
	page.goTo("#/pods/shop/web-0")
	for _, section := range []string{"Sides", "Differences", "Alerts"} {
		page.contains("#pod-sections [aria-label="+section+"]", evil)
	}
	if found := eval[int](page, `document.querySelectorAll('img, main script, main a[href^=javascript]').length`); found != 0 {
		t.Errorf("%d elements were made of text", found)
	}
	if title := eval[string](page, `document.title`); strings.Contains(title, "pwned") {
		t.Errorf("the title is %q: a script has run", title)
	}
}
