package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// planPod makes a pod from words: "proxy*" is a sidecar, "a" before the bar an init
// container, those after it are regular: "a proxy* | main other".
func planPod(words string, policy v1.RestartPolicy) *v1.Pod {
	before, after, _ := strings.Cut(words, "|")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u"}}
	pod.Spec.RestartPolicy = policy
	for _, word := range strings.Fields(before) {
		c := v1.Container{Name: strings.TrimSuffix(word, "*")}
		if strings.HasSuffix(word, "*") {
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for _, word := range strings.Fields(after) {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: word})
	}
	return pod
}

// makePlanInput makes a planInput from words "name=state": run, starting (a sidecar whose
// startup probe has not passed), or an exit code. A container that is not named was never
// started. All that have ended did so a second ago.
func makePlanInput(pod *v1.Pod, words string) *planInput {
	given := &planInput{
		pod: pod, status: &v1.PodStatus{}, now: noon,
		unhealthy: map[string]runtime.ProbeKind{}, restarting: map[string]bool{}, backOffs: map[string]backOff{},
		retries: map[string]time.Time{}, minAttempt: map[string]int{},
	}
	states := map[string]string{}
	for _, word := range strings.Fields(words) {
		name, state, _ := strings.Cut(word, "=")
		states[name] = state
	}
	for _, name := range sortedNames(states) {
		c := runtime.Container{ID: "id-" + name, Name: name, State: runtime.Running, StartedAt: noon.Add(-time.Minute)}
		if code, exited := exitCode(states[name]); exited {
			c.State, c.ExitCode, c.FinishedAt = runtime.Exited, code, noon.Add(-time.Second)
		}
		given.containers = append(given.containers, c)
	}
	*given.status = podstatus.Generate(pod, podstatus.Facts{
		Attempts: attempts(given.containers), Sandbox: true,
		Probe: func(status *v1.PodStatus) { noProbes{}.UpdatePodStatus(pod, status) },
	}, v1.PodStatus{}, noon)
	for i := range given.status.InitContainerStatuses {
		if c := &given.status.InitContainerStatuses[i]; states[c.Name] == "starting" {
			c.Started = new(false)
		}
	}
	return given
}

func exitCode(state string) (code int32, exited bool) {
	_, err := fmt.Sscanf(state, "%d", &code)
	return code, err == nil
}

func sortedNames(states map[string]string) []string {
	var names []string
	for name := range states {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// describePlan puts a plan in words: "start a/1; stop b; wait c; end; wake 9s".
func describePlan(p plan, now time.Time) string {
	var words []string
	for _, s := range p.starts {
		words = append(words, fmt.Sprintf("start %s/%d", s.container.Name, s.attempt))
	}
	for _, s := range p.stops {
		words = append(words, fmt.Sprintf("stop %s", s.container.Name))
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range p.waits {
			if !yield(name) {
				return
			}
		}
	}) {
		words = append(words, "wait "+name)
	}
	if p.end {
		words = append(words, "end")
	}
	if !p.wake.IsZero() {
		words = append(words, "wake "+p.wake.Sub(now).String())
	}
	return strings.Join(words, "; ")
}

func TestPlan(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	for _, c := range []struct {
		pod    string
		policy v1.RestartPolicy
		seen   string
		want   string
	}{
		{"| a b", always, "", "start a/0; start b/0"},
		{"| a b", always, "a=run", "start b/0"},
		{"| a b", always, "a=run b=run", ""},
		{"| a b", always, "a=0 b=run", "start a/1"},
		{"| a b", onFailure, "a=0 b=run", ""},
		{"| a b", onFailure, "a=1 b=run", "start a/1"},
		{"| a b", never, "a=1 b=run", ""},
		{"| a b", never, "a=1 b=0", "end"},
		{"| a", onFailure, "a=0", "end"},

		{"x y | a", always, "", "start x/0"},
		{"x y | a", always, "x=run", ""},
		{"x y | a", always, "x=0", "start y/0"},
		{"x y | a", always, "x=1", "start x/1"},
		{"x y | a", never, "x=1", ""}, // its phase is Failed: the worker ends it
		{"x y | a", always, "x=0 y=0", "start a/0"},
		{"x y | a", always, "x=0 y=0 a=1", "start a/1"},
		{"x y | a", always, "a=run", ""}, // once started, init containers are history

		{"s* x | a", always, "", "start s/0"},
		{"s* x | a", always, "s=starting", ""},
		{"s* x | a", always, "s=run", "start x/0"},
		{"s* x | a", always, "s=1 x=run", "start s/1"},
		{"s* x | a", always, "s=run x=0", "start a/0"},
		{"s* x | a", always, "s=1 x=0 a=run", "start s/1"},
		{"s* x | a", never, "s=1 x=0 a=run", "start s/1"},
		{"s* x | a", never, "s=run x=0 a=0", "end"},
		{"s* x | a", never, "s=1 x=0 a=0", "end"}, // it does not keep the pod going
		{"x s* | a b", always, "x=0 s=starting", ""},
		{"x s* | a b", always, "x=0 s=run", "start a/0; start b/0"},
		{"s* r* | a", always, "s=run", "start r/0"},
		{"s* r* | a", always, "s=0 r=0 a=run", "start s/1; start r/1"},
	} {
		t.Run(fmt.Sprintf("%s, %s: %s", c.pod, c.policy, c.seen), func(t *testing.T) {
			given := makePlanInput(planPod(c.pod, c.policy), c.seen)
			if got := describePlan(makePlan(given), given.now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPlanBackOffs(t *testing.T) {
	for _, c := range []struct {
		story  string
		seen   string
		policy v1.RestartPolicy
		change func(*planInput)
		want   string
	}{
		{"back-off", "a=1", v1.RestartPolicyAlways, func(p *planInput) {
			p.backOffs["a"] = backOff{delay: 10 * time.Second, restart: noon.Add(-5 * time.Second)}
		}, "wait a; wake 9s"},
		{"back-off is over", "a=1", v1.RestartPolicyAlways, func(p *planInput) {
			p.backOffs["a"] = backOff{delay: time.Second, restart: noon.Add(-5 * time.Second)}
		}, "start a/1"},
		{"a start failed", "", v1.RestartPolicyAlways, func(p *planInput) { p.retries["a"] = noon.Add(4 * time.Second) }, "wake 4s"},
		{"a start failed long ago", "", v1.RestartPolicyAlways, func(p *planInput) { p.retries["a"] = noon }, "start a/0"},
		{"unhealthy", "a=run", v1.RestartPolicyNever, func(p *planInput) { p.unhealthy["id-a"] = runtime.LivenessProbe }, "stop a"},
		{"unhealthy before", "a=run", v1.RestartPolicyNever, func(p *planInput) { p.unhealthy["another"] = runtime.LivenessProbe }, ""},
		{"stopped for a probe", "a=0", v1.RestartPolicyOnFailure, func(p *planInput) { p.restarting["id-a"] = true }, "start a/1"},
		{"started over", "", v1.RestartPolicyAlways, func(p *planInput) { p.minAttempt["a"] = 3 }, "start a/3"},
		{"lost by the runtime", "", v1.RestartPolicyAlways, func(p *planInput) { p.status.ContainerStatuses[0].RestartCount = 5 }, "start a/5"},
	} {
		t.Run(c.story, func(t *testing.T) {
			given := makePlanInput(planPod("| a", c.policy), c.seen)
			c.change(given)
			if got := describePlan(makePlan(given), given.now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestHalt(t *testing.T) {
	pod := planPod("x s* r* | a b", v1.RestartPolicyAlways)
	pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}}}
	in := func(d time.Duration) time.Time { return noon.Add(d) }
	all := stopping{by: in(30 * time.Second), ordered: true}
	with := func(s stopping, change func(*stopping)) stopping { change(&s); return s }
	for _, c := range []struct {
		story string
		runs  string
		stops map[string]stopping
		want  string
	}{
		{"nothing is to end", "a b", nil, ""},
		{"one of two", "a b", map[string]stopping{"b": all}, "stop b 30s"},
		{"a hook first", "a b", map[string]stopping{"a": all, "b": all}, "hook a; stop b 30s; wake 30s"},
		{"a hook runs", "a", map[string]stopping{"a": with(all, func(s *stopping) { s.hook = hookRuns })}, "wake 30s"},
		{"a hook is over", "a", map[string]stopping{"a": with(all, func(s *stopping) { s.hook = hookOver })}, "stop a 30s"},
		{"a hook took too long", "a", map[string]stopping{"a": {by: noon, hook: hookRuns}}, "cancel a; stop a 2s"},
		{"no grace, no hook", "a", map[string]stopping{"a": {by: noon}}, "stop a 2s"},
		{"asked already", "b", map[string]stopping{"b": with(all, func(s *stopping) { s.asked = s.by })}, ""},
		{"asked for more", "b", map[string]stopping{"b": {by: in(5 * time.Second), asked: in(30 * time.Second)}}, "stop b 5s"},
		{"asked for as little as possible", "b", map[string]stopping{"b": {by: in(-time.Minute), asked: in(time.Second)}}, ""},
		{"sidecars wait", "b s r", map[string]stopping{"b": all, "s": all, "r": all}, "stop b 30s; wake 30s"},
		{"the last sidecar first", "s r", map[string]stopping{"s": all, "r": all}, "stop r 30s; wake 30s"},
		{"then the first", "s", map[string]stopping{"s": all}, "stop s 30s"},
		{"sidecars do not wait forever", "b s", map[string]stopping{"b": {by: noon, ordered: true, asked: in(time.Second)}, "s": {by: noon, ordered: true}}, "stop s 2s"},
		{"a sidecar that failed a probe waits for nobody", "a s", map[string]stopping{"s": {by: in(9 * time.Second)}}, "stop s 9s"},
		{"an init container waits for nobody", "x s", map[string]stopping{"x": all, "s": all}, "stop x 30s; stop s 30s"},
	} {
		t.Run(c.story, func(t *testing.T) {
			var containers []runtime.Container
			for _, name := range strings.Fields(c.runs) {
				containers = append(containers, runtime.Container{ID: name, Name: name, State: runtime.Running})
			}
			steps, wake := nextSteps(pod, containers, c.stops, noon)
			var words []string
			for _, s := range steps {
				word := string(s.kind) + " " + s.container.Name
				if s.kind == stopNow {
					word += " " + s.grace.String()
				}
				words = append(words, word)
			}
			if !wake.IsZero() {
				words = append(words, "wake "+wake.Sub(noon).String())
			}
			if got := strings.Join(words, "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAPodWithoutAGraceHasTheDefaultOne(t *testing.T) {
	if got := podGrace(&v1.Pod{}); got != 30*time.Second {
		t.Errorf("got %s, want 30s", got)
	}
}

func TestABackOffWhoseReferenceIsInTheFutureIsDue(t *testing.T) {
	day := 24 * time.Hour
	remembered := backOff{delay: time.Minute, restart: noon.Add(-time.Minute)}
	for _, c := range []struct {
		story  string
		before backOff
		exit   time.Time
		want   string
	}{
		{"no record", backOff{}, noon, "start a/1"},
		{"no record, the clock went back", backOff{}, noon.Add(day), "start a/1"},
		{"no record, the clock started in 1970", backOff{}, time.Unix(9, 0), "start a/1"},
		{"a minute to wait", remembered, noon.Add(-20 * time.Second), "wait a; wake 40s"},
		{"the clock went back", remembered, noon.Add(day), "start a/1"},
		{"the clock went back a little", remembered, noon.Add(5 * time.Minute), "start a/1"},
		{"the clock went ahead", remembered, noon.Add(-day), "start a/1"},
	} {
		given := makePlanInput(planPod("| a", v1.RestartPolicyAlways), "a=1")
		given.status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(c.exit)
		given.backOffs["a"] = c.before
		if got := describePlan(makePlan(given), noon); got != c.want {
			t.Errorf("%s: got %q, want %q", c.story, got, c.want)
		}
	}
}
