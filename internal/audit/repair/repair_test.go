package repair_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/repair"
	"github.com/statusd/statusd/podstatus"
)

var now = time.Date(2026, 3, 14, 10, 30, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// pod is one that the API shows as running and ready.
func pod(uid types.UID, policy v1.RestartPolicy) *v1.Pod {
	started := true
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid, ResourceVersion: "7"},
		Spec:       v1.PodSpec{NodeName: "n1", RestartPolicy: policy, Containers: []v1.Container{{Name: "app"}}},
		Status: v1.PodStatus{
			Phase:             v1.PodRunning,
			StartTime:         &metav1.Time{Time: ago(time.Hour)},
			Conditions:        []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: v1.ContainersReady, Status: v1.ConditionTrue}, {Type: "example.com/gate", Status: v1.ConditionTrue}},
			ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: "containerd://c1", ImageID: "sha256:1", Ready: true, Started: &started, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: ago(time.Hour)}}}}},
		},
	}
}

// facts are those of a node whose kubelet has been dead for ten minutes, and whose container exited since.
func facts(p *v1.Pod) audit.Facts {
	good := func(from string) audit.Answer { return audit.Answer{From: from, At: now, Since: ago(time.Hour)} }
	f := audit.Facts{Now: now, Node: "n1"}
	f.APIAnswer, f.RuntimeAnswer, f.MachineAnswer = good("api"), good("runtime"), good("machine")
	f.KubeletAnswer = audit.Answer{At: ago(10 * time.Minute), Err: "connection refused", Silent: ago(10 * time.Minute)}
	f.ManifestsKnown, f.ProcessKnown = true, true
	f.Lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: ago(10 * time.Minute)}}}
	f.LeaseAt = ago(10 * time.Minute)
	f.NodeObject = &v1.Node{}
	f.Sandboxes = map[string]audit.Sandbox{}
	f.Containers = map[string]audit.Container{}
	if p != nil {
		f.APIPods = map[types.UID]audit.Sighting{p.UID: {Pod: p, At: ago(time.Hour)}}
		f.Containers["c1"] = audit.Container{ID: "c1", UID: p.UID, Namespace: "default", PodName: "web", Name: "app", State: audit.ContainerExited, Created: ago(time.Hour), Started: ago(time.Hour), Finished: ago(8 * time.Minute), ExitCode: 3}
	}
	return f
}

// report is that of an auditor that has seen the facts for long enough.
func report(f audit.Facts) audit.Report {
	r := audit.Report{At: f.Now, Differences: audit.Compare(f), Sides: map[audit.Side]audit.Answer{
		audit.SideAPI: f.APIAnswer, audit.SideKubelet: f.KubeletAnswer, audit.SideRuntime: f.RuntimeAnswer, audit.SideMachine: f.MachineAnswer}}
	for i := range r.Differences {
		r.Differences[i].Drift = true
	}
	return r
}

// world is a node and its API server as a repair meets them.
type world struct {
	facts   audit.Facts
	lookErr error
	pods    []v1.Pod
	patches [][]byte
	patchAs error
	stopped []string
	removed []string
	stopErr error
}

func (w *world) Look(context.Context) (audit.Facts, error) { return w.facts, w.lookErr }

func (w *world) Get(_ context.Context, namespace, name string) (*v1.Pod, error) {
	for i := range w.pods {
		if w.pods[i].Namespace == namespace && w.pods[i].Name == name {
			return &w.pods[i], nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
}

func (w *world) List(context.Context) ([]v1.Pod, error) { return w.pods, nil }

func (w *world) PatchStatus(_ context.Context, _, _ string, patch []byte) error {
	if w.patchAs == nil {
		w.patches = append(w.patches, patch)
	}
	return w.patchAs
}

func (w *world) Stop(_ context.Context, id string, grace time.Duration) error {
	if grace != 30*time.Second {
		return errors.New("no grace")
	}
	w.stopped = append(w.stopped, id)
	return w.stopErr
}

func (w *world) Remove(_ context.Context, id string) error {
	w.removed = append(w.removed, id)
	return nil
}

func (w *world) do(t *testing.T, s repair.Step) repair.Result {
	t.Helper()
	r, err := repair.New(repair.Options{Sides: w, API: w, Runtime: w, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return r.Do(t.Context(), s)
}

func plan(f audit.Facts, dryRun bool, past ...repair.Past) []repair.Step {
	return repair.Plan(report(f), repair.Policy{Kinds: repair.Kinds(), DryRun: dryRun}, past, now)
}

func TestWritesForADeadKubelet(t *testing.T) {
	p := pod("u1", v1.RestartPolicyNever)
	w := &world{facts: facts(p), pods: []v1.Pod{*p}}
	steps := plan(w.facts, false)
	if len(steps) != 1 || steps[0].Kind != audit.KubeletBehindRuntime {
		t.Fatalf("planned %+v", steps)
	}
	got := w.do(t, steps[0])
	if got.Outcome != repair.Repaired || len(w.patches) != 1 {
		t.Fatalf("%+v, %d patches", got, len(w.patches))
	}
	patch := string(w.patches[0])
	for _, want := range []string{`"uid":"u1"`, `"resourceVersion":"7"`, `"phase":"Failed"`, `"exitCode":3`, `"sha256:1"`} {
		if !strings.Contains(patch, want) {
			t.Errorf("the patch lacks %s: %s", want, patch)
		}
	}
	if strings.Contains(patch, `"status":"True","type":"example.com/gate"`) {
		t.Errorf("the patch writes a condition of another owner: %s", patch)
	}
	if got.Event.Reason != "StatusDriftRepaired" || !strings.Contains(got.Event.Message, `container "app" terminated with exit code 3, Ready False`) {
		t.Errorf("event %+v", got.Event)
	}
	if !strings.Contains(got.Line, "outcome=repaired") || !strings.Contains(got.Line, "uid=u1") {
		t.Errorf("line %q", got.Line)
	}
}

// TestStatusIsThatOfTheRules: what is written follows from the containers by the rules of podstatus.
func TestStatusIsThatOfTheRules(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy v1.RestartPolicy
		change func(*v1.Pod, *audit.Facts)
		phase  v1.PodPhase
	}{
		{"ended for good", v1.RestartPolicyNever, nil, v1.PodFailed},
		{"ended well", v1.RestartPolicyNever, func(_ *v1.Pod, f *audit.Facts) {
			c := f.Containers["c1"]
			c.ExitCode = 0
			f.Containers["c1"] = c
		}, v1.PodSucceeded},
		{"to be restarted by a kubelet", v1.RestartPolicyAlways, nil, v1.PodRunning},
		{"another container runs", v1.RestartPolicyNever, func(p *v1.Pod, f *audit.Facts) {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "log"})
			f.Containers["c2"] = audit.Container{ID: "c2", UID: p.UID, Name: "log", State: audit.ContainerRunning, Started: ago(time.Hour)}
		}, v1.PodRunning},
		{"another container may run", v1.RestartPolicyNever, func(p *v1.Pod, f *audit.Facts) {
			f.Containers["c0"] = audit.Container{ID: "c0", UID: p.UID, Name: "app", State: audit.ContainerUnknown}
		}, v1.PodRunning},
		{"terminal in the API", v1.RestartPolicyNever, func(p *v1.Pod, _ *audit.Facts) { p.Status.Phase = v1.PodSucceeded }, v1.PodSucceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pod("u1", c.policy)
			f := facts(p)
			if c.change != nil {
				c.change(p, &f)
			}
			s := repair.Status(p, f.Runtime, now)
			if s.Phase != c.phase {
				t.Errorf("phase %s, want %s", s.Phase, c.phase)
			}
			if ready := podstatus.FindCondition(s.Conditions, v1.PodReady); ready == nil || ready.Status != v1.ConditionFalse {
				t.Errorf("Ready is %v", ready)
			}
			if p.Status.Phase == v1.PodRunning && p.Status.ContainerStatuses[0].State.Running == nil {
				t.Error("the pod passed in was changed")
			}
		})
	}
}

// TestNothingIsWritten: every doubt ends a repair of a status before anything is written.
func TestNothingIsWritten(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		want   repair.Outcome
	}{
		{"the kubelet answers again", func(w *world) {
			w.facts.KubeletAnswer = audit.Answer{At: now, Since: ago(time.Second)}
		}, repair.Skipped},
		{"the machine's processes are not seen", func(w *world) { w.facts.ProcessKnown = false }, repair.Skipped},
		{"the kubelet's process is there again", func(w *world) { w.facts.Process = &audit.Process{PID: 5, Started: ago(time.Second)} }, repair.Skipped},
		{"the lease was renewed", func(w *world) { w.facts.Lease.Spec.RenewTime.Time = ago(time.Second) }, repair.Skipped},
		{"no lease", func(w *world) { w.facts.Lease = nil }, repair.Skipped},
		{"the machine does not answer", func(w *world) { w.facts.MachineAnswer.Err = "no" }, repair.Skipped},
		{"the runtime does not answer", func(w *world) { w.facts.RuntimeAnswer.Err = "no" }, repair.Skipped},
		{"silent only now", func(w *world) { w.facts.KubeletAnswer.Silent = ago(time.Minute) }, repair.Skipped},
		{"recreated under the same name", func(w *world) { w.pods[0].UID = "u2" }, repair.Skipped},
		{"ended meanwhile", func(w *world) { w.pods[0].Status.Phase = v1.PodFailed }, repair.Skipped},
		{"gone meanwhile", func(w *world) { w.pods = nil }, repair.Failed},
		{"written meanwhile", func(w *world) {
			w.pods[0].Status = repair.Status(&w.pods[0], w.facts.Runtime, now)
			w.pods[0].Status.Phase = v1.PodRunning
			w.facts.Containers["c1"] = audit.Container{ID: "c1", UID: "u1", Name: "app", State: audit.ContainerRunning}
		}, repair.Skipped},
		{"changed between get and patch", func(w *world) {
			w.patchAs = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("changed"))
		}, repair.Failed},
		{"cannot look", func(w *world) { w.lookErr = errors.New("timeout") }, repair.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pod("u1", v1.RestartPolicyNever)
			w := &world{facts: facts(p), pods: []v1.Pod{*p.DeepCopy()}}
			step := plan(w.facts, false)[0]
			c.change(w)
			got := w.do(t, step)
			if got.Outcome != c.want || len(w.patches) != 0 {
				t.Errorf("%s (%s), %d patches; want %s and none", got.Outcome, got.Reason, len(w.patches), c.want)
			}
			if _, counts := got.Past(); counts != (c.want == repair.Failed) {
				t.Errorf("counts: %v", counts)
			}
		})
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	p := pod("u1", v1.RestartPolicyNever)
	w := &world{facts: facts(p), pods: []v1.Pod{*p}}
	if got := w.do(t, plan(w.facts, true)[0]); got.Outcome != repair.DryRun || len(w.patches) != 0 || !strings.HasPrefix(got.Event.Message, "Dry run") {
		t.Errorf("%+v, %d patches", got, len(w.patches))
	}
}

// orphan is a node on which a container of no pod runs; the kubelet answers.
func orphan() *world {
	f := facts(nil)
	f.KubeletAnswer = audit.Answer{At: now, Since: ago(time.Hour)}
	for _, id := range []string{"c1", "c2"} {
		f.Containers[id] = audit.Container{ID: id, UID: "u1", Namespace: "default", PodName: "web", Name: "app" + id, State: audit.ContainerRunning, Started: ago(time.Hour)}
	}
	f.Containers["other"] = audit.Container{ID: "other", UID: "u2", Namespace: "default", PodName: "web", Name: "app", State: audit.ContainerRunning, Started: ago(time.Hour)}
	f.APIPods = map[types.UID]audit.Sighting{"u2": {Pod: pod("u2", v1.RestartPolicyAlways)}}
	f.KubeletPods = map[types.UID]audit.Sighting{"u2": {Pod: pod("u2", v1.RestartPolicyAlways)}}
	return &world{facts: f, pods: []v1.Pod{*pod("u2", v1.RestartPolicyAlways)}}
}

func orphanStep(w *world) repair.Step {
	steps := slices.DeleteFunc(plan(w.facts, false), func(s repair.Step) bool { return s.Kind != audit.ContainerWithoutPod })
	return steps[0]
}

// TestRemovesContainersOfNoPod: those of a pod that was recreated under the same name stay.
func TestRemovesContainersOfNoPod(t *testing.T) {
	w := orphan()
	got := w.do(t, orphanStep(w))
	if got.Outcome != repair.Repaired || !slices.Equal(w.stopped, []string{"c1", "c2"}) || !slices.Equal(w.removed, w.stopped) {
		t.Errorf("%+v: stopped %v, removed %v", got, w.stopped, w.removed)
	}
}

func TestNothingIsRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		want   repair.Outcome
	}{
		{"the API has the pod", func(w *world) { w.pods = append(w.pods, *pod("u1", v1.RestartPolicyAlways)) }, repair.Skipped},
		{"the API has its mirror", func(w *world) {
			w.pods[0].Annotations = map[string]string{v1.MirrorPodAnnotationKey: "u1"}
		}, repair.Skipped},
		{"the pod is bound to no node yet", func(w *world) {
			w.pods = nil
			w.facts.Containers["c1"] = audit.Container{ID: "c1", UID: "u1", Name: "app", State: audit.ContainerExited}
			delete(w.facts.Containers, "c2")
		}, repair.Skipped},
		{"the kubelet lists the pod", func(w *world) {
			w.facts.KubeletPods["u1"] = audit.Sighting{Pod: pod("u1", v1.RestartPolicyAlways)}
		}, repair.Skipped},
		{"the kubelet is starting", func(w *world) { w.facts.KubeletAnswer.Since = ago(time.Second) }, repair.Skipped},
		{"the kubelet falls silent", func(w *world) {
			w.facts.KubeletAnswer = audit.Answer{Err: "refused", Silent: ago(time.Second)}
		}, repair.Skipped},
		{"cannot stop", func(w *world) { w.stopErr = errors.New("timeout") }, repair.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := orphan()
			step := orphanStep(w)
			c.change(w)
			if got := w.do(t, step); got.Outcome != c.want || len(w.removed) != 0 {
				t.Errorf("%s (%s), removed %v; want %s and none", got.Outcome, got.Reason, w.removed, c.want)
			}
		})
	}
}

// TestPlan: what is not allowed, not certain, not dead for long enough, or beyond the budget is not planned.
func TestPlan(t *testing.T) {
	all := repair.Policy{Kinds: repair.Kinds()}
	base := func() audit.Report { return report(facts(pod("u1", v1.RestartPolicyNever))) }
	for _, c := range []struct {
		name   string
		policy repair.Policy
		change func(*audit.Report)
		past   []repair.Past
		want   int
	}{
		{"allowed", all, nil, nil, 1},
		{"nothing is allowed by default", repair.Policy{}, nil, nil, 0},
		{"another kind is allowed", repair.Policy{Kinds: []audit.Kind{audit.ContainerWithoutPod}}, nil, nil, 0},
		{"no drift yet", all, func(r *audit.Report) { r.Differences[1].Drift = false }, nil, 0},
		{"not certain", all, func(r *audit.Report) { r.Differences[1].Certainty = audit.Possible }, nil, 0},
		{"lease not stale", all, func(r *audit.Report) { r.Differences = r.Differences[1:] }, nil, 0},
		{"dead for too short a time", repair.Policy{Kinds: repair.Kinds(), KubeletDead: time.Hour}, nil, nil, 0},
		{"kubelet answers", all, func(r *audit.Report) {
			r.Sides[audit.SideKubelet] = audit.Answer{At: now}
		}, nil, 0},
		{"tried a minute ago", all, nil, []repair.Past{{At: ago(time.Minute), Pod: audit.Ref{UID: "u1"}}}, 0},
		{"tried long ago", all, nil, []repair.Past{{At: ago(30 * time.Minute), Pod: audit.Ref{UID: "u1"}}}, 1},
		{"budget spent", repair.Policy{Kinds: repair.Kinds(), Budget: 1}, nil, []repair.Past{{At: ago(30 * time.Minute), Pod: audit.Ref{UID: "u9"}}}, 0},
		{"budget spent in the future", repair.Policy{Kinds: repair.Kinds(), Budget: 1}, nil, []repair.Past{{At: now.Add(time.Hour), Pod: audit.Ref{UID: "u9"}}}, 0},
		{"budget free again", repair.Policy{Kinds: repair.Kinds(), Budget: 1}, nil, []repair.Past{{At: ago(2 * time.Hour), Pod: audit.Ref{UID: "u9"}}}, 1},
		{"one for a pod", all, func(r *audit.Report) { r.Differences = append(r.Differences, r.Differences[1]) }, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := base()
			if len(r.Differences) != 2 || r.Differences[0].Kind != audit.LeaseStale {
				t.Fatalf("the report has %+v", r.Differences)
			}
			if c.change != nil {
				c.change(&r)
			}
			if got := repair.Plan(r, c.policy, c.past, now); len(got) != c.want {
				t.Errorf("planned %+v, want %d", got, c.want)
			}
		})
	}
}

func TestPolicyNamesWhatCannotBeRepaired(t *testing.T) {
	if err := (repair.Policy{Kinds: []audit.Kind{audit.ClockSkew}}).Validate(); err == nil || !strings.Contains(err.Error(), "ClockSkew") {
		t.Errorf("error %v", err)
	}
	if err := (repair.Policy{Kinds: repair.Kinds()}).Validate(); err != nil {
		t.Error(err)
	}
}

// service is a CRI client that notes its calls.
type service struct{ calls []string }

func (s *service) StopContainer(_ context.Context, id string, seconds int64) error {
	s.calls = append(s.calls, fmt.Sprintf("stop %s within %d s", id, seconds))
	return nil
}

func (s *service) RemoveContainer(_ context.Context, id string) error {
	s.calls = append(s.calls, "remove "+id)
	return nil
}

func TestCRIStopsWithGrace(t *testing.T) {
	s := &service{}
	runtime := repair.ForCRI(s)
	if err := errors.Join(runtime.Stop(t.Context(), "c1", 1500*time.Millisecond), runtime.Remove(t.Context(), "c1")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.calls, []string{"stop c1 within 2 s", "remove c1"}) {
		t.Errorf("calls %q", s.calls)
	}
}
