//go:build real

package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/observer"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/test/background"
	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/freeport"
)

// beside is a node with a kubelet, as four sides know it. Its kubelet can be frozen, and the container of its pod killed.
type beside struct {
	changed observer.Changed
	since   time.Time

	mu        sync.Mutex // guards what follows
	reported  *v1.Pod
	container audit.Container
	frozen    bool
	renewed   time.Time
}

const besideUID = types.UID("uid-of-web")

func newBeside() *beside {
	since := time.Now().Add(-time.Hour)
	born := metav1.NewTime(since)
	return &beside{
		since: since,
		reported: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: besideUID, CreationTimestamp: born},
			Spec:       v1.PodSpec{NodeName: "beside", Containers: []v1.Container{{Name: "main"}}},
			Status: v1.PodStatus{
				Phase: v1.PodRunning, StartTime: &born, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: born}},
				ContainerStatuses: []v1.ContainerStatus{{Name: "main", Ready: true, ContainerID: "containerd://c1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: born}}}},
			},
		},
		container: audit.Container{ID: "c1", SandboxID: "s1", UID: besideUID, Namespace: "shop", PodName: "web", Name: "main", State: audit.ContainerRunning, Created: since, Started: since},
	}
}

// freezeAndKill stops the kubelet, and ends the container behind its back.
func (b *beside) freezeAndKill() {
	b.mu.Lock()
	b.frozen, b.renewed = true, time.Now()
	b.container.State, b.container.ExitCode, b.container.Reason, b.container.Finished = audit.ContainerExited, 137, "Error", time.Now()
	b.mu.Unlock()
	b.changed(audit.SideMachine, "")
	b.changed(audit.SideRuntime, besideUID)
}

// thaw lets the kubelet go on, which reports what has happened.
func (b *beside) thaw() {
	b.mu.Lock()
	pod := b.reported.DeepCopy()
	s := &pod.Status.ContainerStatuses[0]
	s.Ready, s.State = false, v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode: 137, Reason: "Error", ContainerID: s.ContainerID, StartedAt: metav1.NewTime(b.since), FinishedAt: metav1.NewTime(b.container.Finished)}}
	pod.Status.Conditions[0].Status = v1.ConditionFalse
	b.frozen, b.reported = false, pod
	b.mu.Unlock()
	b.changed(audit.SideMachine, "")
	b.changed(audit.SideKubelet, besideUID)
	b.changed(audit.SideAPI, besideUID)
}

func (b *beside) answer(from string) audit.Answer {
	return audit.Answer{From: from, At: time.Now(), Since: b.since}
}

func (b *beside) seen() map[types.UID]audit.Sighting {
	return map[types.UID]audit.Sighting{besideUID: {Pod: b.reported, At: time.Now()}}
}

// The sides of the node.
type (
	besideAPI     struct{ *beside }
	besideKubelet struct{ *beside }
	besideRuntime struct{ *beside }
	besideMachine struct{ *beside }
)

func (b *beside) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (b *beside) Refresh()                      {}
func (b *beside) Confirm()                      {}
func (b *beside) Calls() map[string]uint64      { return nil }

func (b besideAPI) Facts() audit.API {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, renewed := time.Now(), time.Now()
	if b.frozen {
		renewed = b.renewed
	}
	seconds := int32(40)
	return audit.API{
		APIAnswer: b.answer("https://192.0.2.1"), APIConfirmed: now, APIPods: b.seen(), NodeAt: now, LeaseAt: renewed, ClockAt: now, ClockError: time.Millisecond,
		NodeObject: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "beside", UID: "node"}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}},
		Lease:      &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: &seconds}},
	}
}

func (b besideKubelet) Facts() audit.Kubelet {
	b.mu.Lock()
	defer b.mu.Unlock()
	return audit.Kubelet{KubeletAnswer: b.answer("kubelet.sock"), KubeletPods: b.seen(), KubeletStatuses: true}
}

func (b besideRuntime) Facts() audit.Runtime {
	b.mu.Lock()
	defer b.mu.Unlock()
	return audit.Runtime{
		RuntimeAnswer: b.answer("containerd.sock"), Containers: map[string]audit.Container{"c1": b.container},
		Sandboxes: map[string]audit.Sandbox{"s1": {ID: "s1", UID: besideUID, Namespace: "shop", Name: "web", Ready: true, Created: b.since}},
	}
}

func (b besideMachine) Facts() audit.Machine {
	b.mu.Lock()
	defer b.mu.Unlock()
	return audit.Machine{
		MachineAnswer: b.answer("/"), ManifestsKnown: true, Boot: b.since, Process: &audit.Process{PID: 4711, Started: b.since, Stopped: b.frozen},
		PodDirs: map[types.UID]audit.PodDir{besideUID: {Path: "/var/lib/kubelet/pods/" + string(besideUID), Changed: b.since, At: time.Now()}},
		Cgroups: map[types.UID]audit.Cgroup{besideUID: {Path: "/kubepods/pod" + string(besideUID), Processes: 1, At: time.Now()}},
	}
}

// A container ends while the kubelet is frozen: the page of statusd observe says what is not true any more, and the command and
// curl say the same. When the kubelet goes on, it clears.
func TestThePageSaysWhatIsNotTrueAnyMore(t *testing.T) {
	node := newBeside()
	config := observer.Default()
	config.NodeName, config.StateDir, config.HealthzBindAddress = "beside", t.TempDir(), freeport.Address(t)
	made, err := observer.New(config, observer.Options{
		RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		NewSides: func(_ *rest.Config, changed observer.Changed) (observer.Sides, error) {
			node.changed = changed
			return observer.Sides{API: besideAPI{node}, Kubelet: besideKubelet{node}, Runtime: besideRuntime{node}, Machine: besideMachine{node}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, made.Run)
	statusd := binaries.Path(t, binaries.Statusd)

	page := openTab(t, "http://"+config.HealthzBindAddress+"/")
	page.live()
	const row = `document.querySelector('[data-key="shop/web"]')`
	page.until(row + `?.textContent.includes('● Ready')`)
	page.contains("#node-strip", "nothing known to be untrue")
	if _, code := besideAudit(t, statusd, config.QuerySocketPath()); code != 0 {
		t.Errorf("before anything has happened audit ends with %d", code)
	}

	began := time.Now()
	node.freezeAndKill()
	page.until(row + `.querySelector('.drift:not([hidden])')`)
	t.Logf("%s after the container was killed the page said: %s", time.Since(began).Round(time.Millisecond), eval[string](page, row+`.querySelector('.why').textContent`))
	page.contains(`[data-key="shop/web"] .why`, "Not true since ")
	page.goTo("#/pods/shop/web")
	page.until(`document.querySelectorAll('#pod-sections .difference[data-tone=bad]').length > 0`)
	page.contains("#pod-sections [aria-label=Sides] .differs", "terminated Error (exit code 137)")
	page.screenshot("real-observed-pod")
	kinds := func(differences []audit.Difference) []string {
		found := map[string]bool{}
		for _, d := range differences {
			if d.Drift && d.Pod.UID == besideUID {
				found[string(d.Kind)] = true
			}
		}
		return slices.Sorted(maps.Keys(found))
	}
	byCurl := func() []string {
		var detail view.PodDetail
		fetchInto(t, "http://"+config.HealthzBindAddress+"/apis/v1/pods/shop/web", &detail)
		return kinds(detail.Differences)
	}
	var report audit.Report
	for {
		before := byCurl()
		var code int
		if report, code = besideAudit(t, statusd, config.QuerySocketPath()); code != 1 {
			t.Errorf("with drift audit ends with %d", code)
		}
		if !slices.Equal(before, byCurl()) {
			continue // another difference has become drift meanwhile
		}
		if said := kinds(report.Differences); len(said) == 0 || !slices.Equal(said, before) {
			t.Errorf("the command says %v, curl %v", said, before)
		}
		break
	}
	for _, kind := range kinds(report.Differences) {
		page.until(`document.querySelector('#pod-sections .difference[data-tone=bad][data-kind=` + kind + `]')`)
	}

	node.thaw()
	page.until(`document.querySelectorAll('#pod-sections .difference[data-tone=bad]').length === 0 && document.querySelector('#pod-drift').hidden`)
	page.goTo("#/")
	page.until(row + `.querySelector('.drift').hidden`)
	if report, code := besideAudit(t, statusd, config.QuerySocketPath()); code != 0 {
		t.Errorf("after it has cleared audit ends with %d: %+v", code, report.Differences)
	}
}

// besideAudit asks the command, and returns its exit code.
func besideAudit(t *testing.T, statusd, socket string) (report audit.Report, code int) {
	t.Helper()
	output, err := exec.Command(statusd, "audit", "-o", "json", "--socket", socket).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err, code = nil, exit.ExitCode()
	}
	if err == nil {
		err = json.Unmarshal(output, &report)
	}
	if err != nil {
		t.Fatalf("statusd audit: %v\n%s", err, output)
	}
	return report, code
}
