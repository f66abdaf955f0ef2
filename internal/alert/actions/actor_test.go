package actions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// scene is an actor over fakes, in virtual time.
type scene struct {
	*Actor
	mu       sync.Mutex
	said     []string
	recorded []string // on the goroutine of Run
	err      error    // of what is done
	marks    map[string]bool
	markErr  error
}

func (s *scene) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *scene) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.markErr = err, err
}

func (s *scene) Set(_ context.Context, mark string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.markErr != nil {
		return false, s.markErr
	}
	had := s.marks[mark]
	s.marks[mark] = true
	return !had, nil
}

func (s *scene) Unset(_ context.Context, mark string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.markErr != nil {
		return s.markErr
	}
	delete(s.marks, mark)
	return nil
}

func (s *scene) do(_ context.Context, r *engine.ActionRequest) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "did " + string(r.Action.Kind), s.err
}

var all = Policy{ruleset.ActionEvict: {}, ruleset.ActionRestartContainer: {}, ruleset.ActionTaint: {Budget: new(10)}, ruleset.ActionCordon: {}, ruleset.ActionWebhook: {}}

func newScene(t *testing.T, policy Policy, file string) *scene {
	t.Helper()
	s := &scene{marks: map[string]bool{}}
	actor, err := New(Options{
		Policy: policy, Node: "n1", File: file, Marks: s,
		Do: map[ruleset.ActionKind]Do{ruleset.ActionEvict: s.do, ruleset.ActionRestartContainer: s.do},
		Event: func(about v1.ObjectReference, _, reason, message string) {
			s.say("event %s %s %s", about.Kind, reason, message)
		},
		Record: func(_ alert.Alert, action alert.Action) {
			if s.recorded = append(s.recorded, action.Action+" "+action.Result); action.Result == Undone {
				s.say("record %s %s", action.Action, action.Result)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Actor = actor
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- actor.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scene) ask(fingerprint, pod string, action ruleset.Action) {
	s.Act(engine.ActionRequest{
		Alert:  alert.Alert{Fingerprint: fingerprint, Rule: "Stuck", Pod: pod, UID: types.UID(pod), Namespace: "default", Container: "c", Annotations: map[string]string{"summary": "it is stuck"}},
		Action: action, Node: "n1",
		Done: func(a alert.Action) { s.say("%s %s: %s", a.Action, a.Result, a.Message) },
	})
}

func (s *scene) over(fingerprint string) {
	s.Notify(engine.Notification{Alert: alert.Alert{Fingerprint: fingerprint, Rule: "Stuck", State: alert.Resolved}, Done: func() { s.say("over") }})
}

// heard returns what was said since the last call.
func (s *scene) heard() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.said
	s.said = nil
	return said
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) || !slices.EqualFunc(got, want, func(g, w string) bool { return strings.Contains(g, w) }) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestAnActionIsAnEventAndAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, all, "")
		s.ask("f", "a", ruleset.Action{Kind: ruleset.ActionEvict})
		want(t, "evict", s.heard(), "event Pod AlertAction evict done for rule Stuck (it is stuck): did evict", "evict done: did evict")
		if s.recorded[0] != "evict done" {
			t.Errorf("recorded %q", s.recorded)
		}
		s.ask("g", "a", ruleset.Action{Kind: ruleset.ActionRestartContainer})
		want(t, "another on the same pod", s.heard(), "restartContainer refused: the pod is evicted")
		s.ask("h", "", ruleset.Action{Kind: ruleset.ActionRestartKubelet})
		want(t, "off", s.heard(), "restartKubelet refused: the action restartKubelet is off")
		s.ask("i", "", ruleset.Action{Kind: ruleset.ActionWebhook})
		want(t, "not possible here", s.heard(), "webhook refused: webhook is not possible here")
		s.ask("j", "b", ruleset.Action{Kind: ruleset.ActionEvict, DryRun: true})
		want(t, "dry run", s.heard(), "event Pod AlertAction evict dry-run", "evict dry-run: would have been done")
	})
}

func TestADisruptionBudgetIsAskedAgainWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, all, "")
		s.set(&LaterError{errors.New("budget")})
		s.ask("f", "a", ruleset.Action{Kind: ruleset.ActionEvict})
		s.ask("g", "a", ruleset.Action{Kind: ruleset.ActionRestartContainer})
		want(t, "another action meanwhile", s.heard(), "restartContainer refused: evict for rule Stuck is in progress")
		time.Sleep(2 * time.Minute)
		s.set(nil)
		time.Sleep(time.Minute)
		want(t, "once it is allowed", s.heard(), "event Pod AlertAction evict done", "evict done")

		s.set(&LaterError{errors.New("budget")})
		s.ask("h", "b", ruleset.Action{Kind: ruleset.ActionEvict})
		time.Sleep(patience + time.Minute)
		want(t, "never allowed", s.heard(), "event Pod AlertAction evict failed", "evict failed: given up after")
	})
}

func TestWhatWaitsIsGivenUpWhenTheAlertIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, all, "")
		s.set(&LaterError{errors.New("budget")})
		s.ask("f", "a", ruleset.Action{Kind: ruleset.ActionEvict})
		synctest.Wait()
		s.over("f")
		want(t, "over", s.heard(), "event Pod AlertAction evict failed", "evict failed: the alert was over", "over")
		s.set(nil)
		time.Sleep(time.Hour)
		want(t, "later", s.heard())
	})
}

const taint = "example.com/bad=yes:NoSchedule"

func TestMarksAreTakenBackWithTheLastAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, all, "")
		s.ask("f", "", ruleset.Action{Kind: ruleset.ActionTaint, Taint: taint})
		s.heard()
		s.ask("g", "", ruleset.Action{Kind: ruleset.ActionTaint, Taint: taint})
		want(t, "the second alert", s.heard(), "event Node", "taint done: the node has it for another alert")
		s.over("f")
		want(t, "the first is over", s.heard(), "over")
		if !s.marks[taint] {
			t.Error("the taint is gone, and one alert still wants it")
		}
		s.set(errors.New("down"))
		s.over("g")
		time.Sleep(time.Minute)
		want(t, "the server is down", s.heard())
		s.set(nil)
		time.Sleep(2 * time.Minute)
		want(t, "the last is over", s.heard(), "event Node AlertAction taint undone", "record taint undone", "over")
		if s.marks[taint] {
			t.Error("the taint is still there")
		}
	})
}

func TestAMarkThatTheNodeHadBeforeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, all, "")
		s.marks[cordon] = true
		s.ask("f", "", ruleset.Action{Kind: ruleset.ActionCordon})
		want(t, "cordon", s.heard(), "event Node", "cordon done: the node had it already")
		s.over("f")
		want(t, "over", s.heard(), "over")
		if !s.marks[cordon] {
			t.Error("the operator's cordon was taken back")
		}
	})
}

func TestAnAlertThatComesWhileAMarkIsTakenBackGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, all, "")
		s.ask("f", "", ruleset.Action{Kind: ruleset.ActionTaint, Taint: taint})
		s.heard()
		s.set(errors.New("down"))
		s.over("f")
		synctest.Wait()
		s.ask("g", "", ruleset.Action{Kind: ruleset.ActionTaint, Taint: taint})
		synctest.Wait()
		s.set(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !s.marks[taint] {
			t.Error("the taint is gone, and an alert wants it")
		}
		s.over("g")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.marks[taint] {
			t.Error("the taint is still there")
		}
	})
}

func TestBudgetsAndMarksSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "actions")
		marks := map[string]bool{}
		first := newScene(t, Policy{ruleset.ActionEvict: {Budget: new(1)}, ruleset.ActionCordon: {}}, file)
		first.marks = marks
		first.ask("f", "a", ruleset.Action{Kind: ruleset.ActionEvict})
		first.ask("g", "", ruleset.Action{Kind: ruleset.ActionCordon})
		first.heard()
		second := newScene(t, Policy{ruleset.ActionEvict: {Budget: new(1)}, ruleset.ActionCordon: {}}, file)
		second.marks = marks
		second.ask("h", "b", ruleset.Action{Kind: ruleset.ActionEvict})
		want(t, "the budget is used up", second.heard(), "evict refused: the budget")
		second.over("g")
		want(t, "the cordon is taken back", second.heard(), "event Node AlertAction cordon undone", "record cordon undone", "over")
		if marks[cordon] {
			t.Error("the node is still cordoned")
		}
	})
}

// A clock that was ahead for a while forbids nothing for longer than the limits say.
func TestAClockThatWasAheadForbidsNothingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "actions")
		ledger := Ledger{Entries: []Entry{{Rule: "Stuck", Kind: ruleset.ActionRestartContainer, Subject: "pod/a", At: time.Now().AddDate(50, 0, 0), Done: true}}}
		if err := ledger.save(file); err != nil {
			t.Fatal(err)
		}
		s := newScene(t, Policy{ruleset.ActionRestartContainer: {Budget: new(1), Per: time.Hour, CoolDown: time.Hour}}, file)
		s.ask("f", "a", ruleset.Action{Kind: ruleset.ActionRestartContainer})
		want(t, "it counts from now on", s.heard(), "restartContainer refused: cool-down")
		time.Sleep(time.Hour)
		s.ask("g", "a", ruleset.Action{Kind: ruleset.ActionRestartContainer})
		want(t, "and no longer than it may", s.heard(), "event Pod AlertAction restartContainer done", "restartContainer done")
	})
}

func TestAWebhookIsCalled(t *testing.T) {
	called := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.URL.Path }))
	defer server.Close()
	message, err := Call("")(t.Context(), &engine.ActionRequest{Action: ruleset.Action{URL: server.URL + "/do"}, Alert: alert.Alert{Rule: "r"}})
	if err != nil || <-called != "/do" || !strings.HasPrefix(message, "called ") {
		t.Errorf("%q, %v", message, err)
	}
	if _, err := Call("")(t.Context(), &engine.ActionRequest{}); err == nil {
		t.Error("no URL: want an error")
	}
}

// An action that is refused for its budget is done when the budget allows it, as long as its alert fires.
func TestBudget_RefusedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Policy{ruleset.ActionEvict: {Budget: new(1), Per: 15 * time.Second, CoolDown: time.Second}}, "")
		for _, f := range []string{"a", "b", "c"} {
			s.ask(f, f, ruleset.Action{Kind: ruleset.ActionEvict})
		}
		heard := s.heard()
		slices.Sort(heard) // the action has a goroutine of its own
		want(t, "at once", heard, "event Pod AlertAction evict done", "evict done", "evict refused: the budget of 1 in 15 s is used up; it is tried again at", "evict refused: the budget of 1 in 15 s")
		time.Sleep(16 * time.Second)
		want(t, "a period later", s.heard(), "event Pod AlertAction evict done", "evict done")
		s.Notify(engine.Notification{Alert: alert.Alert{Fingerprint: "c", State: alert.Resolved}})
		time.Sleep(time.Hour)
		want(t, "its alert is over", s.heard())
	})
}

// A budget of 0 forbids the action.
func TestBudget_ZeroForbids(t *testing.T) {
	v := Decide(Request{Action: ruleset.Action{Kind: ruleset.ActionEvict}, Subject: "pod/1"}, &Ledger{}, Policy{ruleset.ActionEvict: {Budget: new(0)}}, time.Now())
	if v.Refused == "" || !v.Until.IsZero() {
		t.Errorf("got %+v", v)
	}
}
