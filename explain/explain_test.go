package explain_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/podstatus"
)

var rewrite = flag.Bool("rewrite", false, "record the sentences as they are now")

// now is when all facts of these tests were collected.
var now = time.Date(2026, 3, 14, 10, 32, 43, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// story is a pod in a state, with what explain must say of it.
type story struct {
	name  string
	state explain.State
	// codes are the codes from the state to the first root.
	codes []explain.Code
	facts func() explain.Facts
}

// TestSentences holds the sentences of all stories against testdata/sentences.txt: a reviewer
// reads there what a person on call reads.
func TestSentences(t *testing.T) {
	var b strings.Builder
	for _, s := range slices.Concat(stories(), leftStories()) {
		e := explain.Pod(s.facts())
		fmt.Fprintf(&b, "# %s\n%s\n\n", s.name, e.Sentence(time.UTC))
	}
	file := filepath.Join("testdata", "sentences.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wanted, got := strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")
	for i := range min(len(wanted), len(got)) {
		if wanted[i] != got[i] {
			t.Errorf("line %d has changed; if it should, run with -rewrite:\n got: %s\nwant: %s", i+1, got[i], wanted[i])
		}
	}
	if len(wanted) != len(got) {
		t.Errorf("%d lines, want %d; if they should change, run with -rewrite", len(got), len(wanted))
	}
}

func TestStories(t *testing.T) {
	for _, s := range slices.Concat(stories(), leftStories()) {
		t.Run(s.name, func(t *testing.T) {
			e := explain.Pod(s.facts())
			if e.State != s.state {
				t.Errorf("state %s, want %s", e.State, s.state)
			}
			var codes []explain.Code
			for causes := e.Causes; len(causes) > 0; causes = causes[0].Causes {
				codes = append(codes, causes[0].Code)
			}
			if !slices.Equal(codes, s.codes) {
				t.Errorf("chain %v, want %v", codes, s.codes)
			}
			checkComplete(t, e)
		})
	}
}

// checkComplete fails unless every chain ends with what would change it.
func checkComplete(t interface{ Errorf(string, ...any) }, e explain.Explanation) {
	if e.State == "" || e.State == explain.StateUnknown && len(e.Causes) == 0 {
		t.Errorf("no state")
	}
	if len(e.Causes) == 0 && e.State != explain.StateReady {
		t.Errorf("state %s has no cause", e.State)
	}
	roots := slices.Concat(e.Roots(), e.Notes, e.NotTrue)
	if e.Delivery != nil {
		roots = append(roots, *e.Delivery)
	}
	for _, root := range roots {
		if root.Code == "" || root.Text == "" {
			t.Errorf("a cause without code or text: %+v", root)
		}
		if root.Next == nil || root.Next.Do == "" && root.Next.Wait == "" {
			t.Errorf("%s: nothing says what would change it: %s", root.Code, root.Text)
		}
		if strings.ContainsAny(root.Text, "\n\r") {
			t.Errorf("%s: more than a line: %q", root.Code, root.Text)
		}
	}
	sentence := e.Sentence(time.UTC)
	for _, odd := range []string{"  ", "..", "::", ": .", "because .", "%!", "0001-01-01", "<nil>"} {
		if strings.Contains(sentence, odd) {
			t.Errorf("the sentence has %q: %s", odd, sentence)
		}
	}
}

// TestEveryStateHasAnExplanation enumerates the states that a pod can be in: phase, deletion,
// node, what each container is in, conditions, with everything known beyond the status or nothing.
func TestEveryStateHasAnExplanation(t *testing.T) {
	phases := []v1.PodPhase{"", v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown}
	reasons := []string{"", "Evicted", "Preempting", "DeadlineExceeded", "Terminated", "NodeLost", "OutOfcpu", "NodeAffinity", "SomethingNew"}
	count := 0
	for _, phase := range phases {
		for _, reason := range reasons {
			for _, init := range containerStates() {
				for _, main := range containerStates() {
					for bits := range 32 {
						f := combination(phase, reason, init, main, bits)
						e := explain.Pod(f)
						sink := &failures{}
						checkComplete(sink, e)
						if len(sink.list) > 0 {
							data, _ := json.Marshal(f)
							t.Fatalf("%s\n%s\n%s", strings.Join(sink.list, "\n"), e.Sentence(time.UTC), data)
						}
						count++
					}
				}
			}
		}
	}
	t.Logf("%d states", count)
}

type failures struct{ list []string }

func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// combination makes facts; each bit adds something.
func combination(phase v1.PodPhase, reason string, init, main *v1.ContainerStatus, bits int) explain.Facts {
	f := facts(func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "init"}}
		p.Status.Phase, p.Status.Reason = phase, reason
		p.Status.StartTime = &metav1.Time{Time: ago(time.Minute)}
	})
	if init != nil {
		status := *init
		status.Name = "init"
		f.Pod.Status.InitContainerStatuses = []v1.ContainerStatus{status}
	}
	if main != nil {
		status := *main
		status.Name = "db"
		f.Pod.Status.ContainerStatuses = []v1.ContainerStatus{status}
	}
	if bits&1 != 0 {
		f.Pod.DeletionTimestamp = &metav1.Time{Time: ago(-12 * time.Second)}
	}
	if bits&2 != 0 {
		f.Pod.Spec.NodeName = ""
	}
	if bits&4 != 0 {
		always := v1.ContainerRestartPolicyAlways
		f.Pod.Spec.InitContainers[0].RestartPolicy = &always
		f.Pod.Spec.RestartPolicy = v1.RestartPolicyNever
	}
	if bits&8 != 0 {
		f.Pod.Spec.Containers[0].ReadinessProbe = httpProbe(8080)
		f.Pod.Status.Conditions = append(f.Pod.Status.Conditions, condition(v1.PodReady, v1.ConditionFalse, "", ""))
		f.Containers = map[string]explain.Container{"db": {
			Readiness: &podstatus.Probe{Failures: 3, Since: ago(time.Minute), Answer: "connection refused"}, ContainerFacts: podstatus.ContainerFacts{NextStart: ago(-time.Minute)},
		}}
	}
	if bits&16 != 0 {
		f.Delivery = &podstatus.Delivery{Version: 3, Accepted: 1, Since: ago(time.Second), Attempts: 2, Error: "503", NextTry: ago(-time.Second)}
		f.Node.Unreachable = ago(time.Minute)
	}
	return f
}

// containerStates are the states that a container can be in; nil is one that was not reported.
func containerStates() []*v1.ContainerStatus {
	yes, no := true, false
	list := []*v1.ContainerStatus{nil, {}, {Ready: true, Started: &yes, ContainerID: "process://1", State: running(time.Minute)},
		{Started: &yes, ContainerID: "process://1", State: running(time.Minute)}, {Started: &no, ContainerID: "process://1", State: running(time.Minute)}}
	for _, reason := range []string{"", "ContainerCreating", "PodInitializing", "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "NeverHeardOf"} {
		list = append(list, &v1.ContainerStatus{State: waiting(reason, "")})
	}
	for _, code := range []int32{0, 1, 137} {
		list = append(list, &v1.ContainerStatus{State: ended("", code, "")})
	}
	return append(list, &v1.ContainerStatus{RestartCount: 2, State: waiting("CrashLoopBackOff", "back-off 20s"), LastTerminationState: ended("OOMKilled", 137, "")})
}

// TestWhateverIsReportedIsExplained draws facts that no node would report.
func TestWhateverIsReportedIsExplained(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "x", "a b.\nc\r\n", strings.Repeat("ä", 500), "\xff\xfe", "100%!d(MISSING)", "Error", "OutOf", "OutOfcpu"})
	rapid.Check(t, func(t *rapid.T) {
		states := containerStates()
		f := combination(v1.PodPhase(text.Draw(t, "phase")), text.Draw(t, "reason"),
			rapid.SampledFrom(states).Draw(t, "init"), rapid.SampledFrom(states).Draw(t, "main"), rapid.IntRange(0, 31).Draw(t, "bits"))
		f.Pod.Status.Message = text.Draw(t, "message")
		f.Warnings = []explain.Warning{{Reason: text.Draw(t, "warning"), Message: text.Draw(t, "warning text"), Container: rapid.SampledFrom([]string{"", "db", "other"}).Draw(t, "of")}}
		f.Pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: v1.PodConditionType(text.Draw(t, "gate"))}}
		f.Pod.Finalizers = []string{text.Draw(t, "finalizer")}
		e := explain.Pod(f)
		if e.State == "" || len(e.Causes) == 0 && e.State != explain.StateReady {
			t.Fatalf("state %q has no cause", e.State)
		}
		for _, root := range e.Roots() {
			if root.Next == nil || root.Next.Do == "" && root.Next.Wait == "" {
				t.Fatalf("%s: nothing says what would change it", root.Code)
			}
		}
		if sentence := e.Sentence(time.UTC); strings.ContainsAny(sentence, "\n\r") || len(sentence) > 4000 {
			t.Fatalf("not a sentence: %q", sentence)
		}
	})
}

// The facts are the caller's: also what is behind the end of a slice stays as it is.
func TestFactsAreNotWrittenTo(t *testing.T) {
	f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
	spare := make([]v1.ContainerStatus, 0, 4)
	f.Pod.Status.InitContainerStatuses = spare
	explain.Pod(f)
	if got := spare[:1][0].Name; got != "" {
		t.Errorf("the array of the init container statuses got %q", got)
	}
}

func TestNothingIsKnown(t *testing.T) {
	e := explain.Pod(explain.Facts{})
	checkComplete(t, e)
	if e.State != explain.StateUnknown {
		t.Errorf("got %s", e.State)
	}
}
