package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/podstatus"
)

// crashing is a container in back-off after 15 restarts whose last run took a second.
func crashing(message string) explain.Facts {
	f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", "back-off 5m0s"), v1.ConditionFalse), func(p *v1.Pod) {
		s := &p.Status.ContainerStatuses[0]
		s.RestartCount, s.LastTerminationState = 15, ended("Error", 1, message)
		s.LastTerminationState.Terminated.StartedAt = metav1.Time{Time: ago(21 * time.Second)}
	})
	f.Containers = map[string]explain.Container{"db": {ContainerFacts: podstatus.ContainerFacts{NextStart: now.Add(298 * time.Second)}}}
	return f
}

// The deepest cause leads; how often, how long and what comes next follow.
func TestCrashLoop_CauseFirst(t *testing.T) {
	const want = `exit code 1: FATAL: password authentication failed for user "shop" · 15 restarts in 9 min, the last after 1 s · next start in 4 min 58 s`
	e := explain.Pod(crashing(`FATAL: password authentication failed for user "shop"`))
	if got := e.Brief(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := e.Sentence(time.UTC); !strings.Contains(got, want) || !strings.Contains(got, "To do: correct the user name or password that the container is given (kubectl logs -n default web -c db --previous).") || strings.Contains(got, "since") {
		t.Errorf("got %s", got)
	}
}

// The cause of a long message is at its end; the head says what failed.
func TestLongMessages_KeepHeadAndTail(t *testing.T) {
	f := facts(with(v1.PodPending, waiting("ErrImagePull", `failed to pull and unpack image "registry.example/shop/app:v1": failed to resolve reference "registry.example/shop/app:v1": `+
		"failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://registry.example/token?scope=repository%3Ashop%2Fapp%3Apull&service=registry.example: 403 Forbidden"), v1.ConditionFalse))
	got := explain.Pod(f).Sentence(time.UTC)
	if !strings.Contains(got, `failed to pull and unpack image`) || !strings.Contains(got, "403 Forbidden. Next:") || !strings.Contains(got, "imagePullSecrets") || strings.Contains(got, "…. ") {
		t.Errorf("got %s", got)
	}
	trace := "Traceback (most recent call last):\n  File \"<frozen runpy>\", line 198, in _run_module_as_main\n  File \"/usr/lib/python3.11/socketserver.py\", line 456, in __init__\n" + strings.Repeat("    self.server_bind()\n", 30) + "OSError: [Errno 98] Address already in use\n"
	if got := explain.Pod(crashing(trace)).Brief(); !strings.HasPrefix(got, "exit code 1: OSError: [Errno 98] Address already in use · ") {
		t.Errorf("got %s", got)
	}
	panicked := "starting\npanic: runtime error: index out of range [3]\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:7 +0x1d\nexit status 2\n"
	if got := explain.Pod(crashing(panicked)).Brief(); !strings.HasPrefix(got, "exit code 1: panic: runtime error: index out of range [3] · ") {
		t.Errorf("got %s", got)
	}
}

// The log of the run that failed is shown, and its telling line is the cause.
func TestLog_IsTheCause(t *testing.T) {
	f := crashing("")
	c := f.Containers["db"]
	c.Log = &explain.Log{Previous: true, Lines: explain.LogLines([]byte("connecting to postgres://shop:hunter2@db:5432/shop\nFATAL: no pg_hba.conf entry for host\nbye\n"))}
	f.Containers["db"] = c
	e := explain.Pod(f)
	if got := e.Brief(); !strings.HasPrefix(got, "exit code 1: FATAL: no pg_hba.conf entry for host · ") {
		t.Errorf("got %s", got)
	}
	want := []string{"connecting to postgres://shop:[redacted]@db:5432/shop", "FATAL: no pg_hba.conf entry for host", "bye"}
	if len(e.Logs) != 1 || e.Logs[0].Container != "db" || !slices.Equal(e.Logs[0].Lines, want) {
		t.Errorf("got %+v", e.Logs)
	}
	if wanted, previous := f.FailedRun("db"); !wanted || !previous {
		t.Errorf("got %v, %v", wanted, previous)
	}
}

func TestLogLines_BoundedEscapedRedacted(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m \u202etxt":                   "red txt",
		"password=hunter2 user=shop":                     "password=[redacted] user=shop",
		`{"apiKey": "abc123", "x": 1}`:                   `{"apiKey": "[redacted]", "x": 1}`,
		"Authorization: Bearer abcdefgh12345678":         "Authorization: Bearer [redacted]",
		"token " + jwt:                                   "token [redacted]",
		"AKIAIOSFODNN7EXAMPLE is used":                   "[redacted] is used",
		"password authentication failed for user shop":   "password authentication failed for user shop",
		"DB_PASSWORD: s3cr3t!":                           "DB_PASSWORD: [redacted]",
		"<script>alert(1)</script>":                      "<script>alert(1)</script>",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc==\n": "-----BEGIN RSA PRIVATE KEY-----[redacted]",
	} {
		if got := strings.Join(explain.LogLines([]byte(in)), "|"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	lines := explain.LogLines([]byte(strings.Repeat(strings.Repeat("x", 10_000)+"\n", 100)))
	if len(lines) > 12 || len(lines[0]) > 300 {
		t.Errorf("%d lines of %d", len(lines), len(lines[0]))
	}
}

// Each of two causes has its own outlook right behind it.
func TestTwoCauses_EachWithItsOutlook(t *testing.T) {
	f := crashing("no such table: users")
	f.Pod.Spec.Containers = append(f.Pod.Spec.Containers, v1.Container{Name: "proxy", ReadinessProbe: httpProbe(8080)})
	started := true
	f.Pod.Status.ContainerStatuses = append(f.Pod.Status.ContainerStatuses, v1.ContainerStatus{Name: "proxy", State: running(time.Minute), Started: &started})
	f.Containers["proxy"] = explain.Container{Readiness: &podstatus.Probe{Failures: 4, Since: ago(time.Minute), Answer: "connection refused"}}
	e := explain.Pod(f)
	got := e.Sentence(time.UTC)
	first, second, ok := strings.Cut(got, " Also because ")
	if !ok || !strings.Contains(first, "no such table") || !strings.Contains(first, "-c db --previous") || !strings.Contains(second, `container "proxy"`) || !strings.Contains(second, "listens on the port") {
		t.Errorf("got %s", got)
	}
	if brief := e.Brief(); !strings.HasPrefix(brief, "db: exit code 1: no such table: users · ") || !strings.Contains(brief, "; proxy: its readiness probe") {
		t.Errorf("got %s", brief)
	}
}

// Each obstacle of the scheduler has its own advice, and what the scheduler tried is left out.
func TestUnschedulable_AdviceByCause(t *testing.T) {
	const preemption = " no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	for message, want := range map[string][]string{
		`0/1 nodes are available: persistentvolumeclaim "pgdata" not found.` + preemption:                                           {`PersistentVolumeClaim "pgdata" not found`, "create the claim", "kubectl get pvc -n default"},
		"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s) {gpu: yes}." + preemption:                  {"2 of 3 nodes have a taint that it does not tolerate {gpu: yes}", "1 of 3 nodes has too little cpu left", "tolerate the taint", "ask for less cpu"},
		"0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector." + preemption:                                {"none of the 3 nodes has the labels", "kubectl get nodes --show-labels"},
		"0/1 nodes are available: 1 node(s) had volume node affinity conflict.":                                                     {"the one node has no access to its volume"},
		"0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/2 nodes are available: 2 nothing": {"is not bound to a volume", "kubectl describe pvc -n default"},
		"0/2 nodes are available: 1 node(s) were unschedulable, 1 Too many pods.":                                                   {"1 of 2 nodes is cordoned", "1 of 2 nodes has as many pods as allowed"},
		"a message of another scheduler": {"the scheduler finds no node for it: a message of another scheduler"},
	} {
		f := facts(func(p *v1.Pod) {
			p.Spec.NodeName = ""
			p.Status.Conditions = []v1.PodCondition{condition(v1.PodScheduled, v1.ConditionFalse, "Unschedulable", message)}
		})
		got := explain.Pod(f).Sentence(time.UTC)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in %s", message, w, got)
			}
		}
		if strings.Contains(got, "reemption") || strings.Contains(got, "free or add capacity") {
			t.Errorf("%s: got %s", message, got)
		}
	}
}

// Every "to do" has a command to copy.
func TestEveryToDo_HasACommand(t *testing.T) {
	for _, s := range slices.Concat(stories(), leftStories()) {
		e := explain.Pod(s.facts())
		for _, root := range slices.Concat(e.Roots(), e.Notes) {
			if root.Next != nil && root.Next.Do != "" && root.Next.Command == "" {
				t.Errorf("%s: %s has no command", s.name, root.Next.Do)
			}
		}
	}
}
